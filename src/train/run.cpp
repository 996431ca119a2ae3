#include "run.hpp"

#include "base/file.hpp"
#include "base/memory.hpp"
#include "base/notice.hpp"
#include "base/text.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "comm/phase.hpp"
#include "comm/phase_scope.hpp"

#include <algorithm>
#include <utility>

#include "announce.hpp"
#include "earlier_records.hpp"
#include "heap.hpp"

namespace lockstep::train {

namespace {

checkpoint::Store store_of(RunSetup const& setup) {
    return {std::filesystem::path(setup.deck.run.directory) / "checkpoints",
            static_cast<int>(setup.deck.checkpoint.keep),
            // A write in the background may outlive the run.
            [directory = setup.directory] { directory->require_ours(); }, setup.local};
}

} // namespace

std::unique_ptr<Run> Run::start(comm::Communicator const& world, RunOptions options,
                                SignalRequests const& signals) {
    auto topology = comm::Topology::discover(world);
    auto setup = set_up_run(world, options);
    settle_heap(setup.deck);
    return comm::in_phase(world, comm::Phase::start_up, [&] {
        auto run = std::make_unique<Run>(world, std::move(options), signals, std::move(topology),
                                         std::move(setup));
        run->watched([&] { run->begin(); });
        return run;
    });
}

void Run::abandon() noexcept {
    checkpoints_.abandon();
    opened_.engine()->abandon();
}

Run::Run(comm::Communicator const& world, RunOptions options, SignalRequests const& signals,
         comm::Topology topology, RunSetup setup)
    : world_(world), options_(std::move(options)),
      used_before_(options_.place ? process_usage() : Usage{}),
      walltime_(world.is_root() ? Walltime(options_.seconds_left, options_.seconds_of_job)
                                : Walltime()),
      opened_(world, std::move(topology), std::move(setup)),
      departure_({world, signals, walltime_, progress_, totals_, observers_}, options_.asked),
      state_({opened_.facts(), opened_.work(), opened_.data(), opened_.course(), opened_.audit(),
              opened_.engine(), opened_.remarks(), progress_},
             options_),
      store_(store_of(opened_.facts().setup)),
      checkpoints_({world, opened_.facts().deck().checkpoint, store_, opened_.facts().attempt,
                    state_, opened_.audit(), progress_, walltime_, observers_},
                   CheckpointAdvice({world, opened_.facts().topology, store_,
                                     opened_.facts().deck().checkpoint.keep, state_,
                                     opened_.course(), totals_, observers_}),
                   watch_),
      copies_({opened_.facts(), state_, progress_, observers_}),
      best_({opened_.facts(), opened_.work(), opened_.engine(), state_, checkpoints_, progress_,
             observers_}),
      evaluation_({opened_.facts(), opened_.work(), opened_.data(), opened_.course(),
                   opened_.engine(), best_, departure_, progress_, observers_}),
      resources_(world_, opened_.facts().topology, totals_, {watch_, used_before_}),
      records_({opened_.facts(), opened_.work(), opened_.data(), opened_.course(), opened_.engine(),
                progress_, totals_, walltime_, observers_, resources_},
               watch_),
      checks_(opened_.facts(), opened_.data(), progress_, observers_),
      loop_({opened_.facts(), opened_.work(), opened_.data(), opened_.course(), opened_.audit(),
             opened_.engine(), progress_, observers_, departure_, records_, evaluation_,
             checkpoints_, copies_, checks_},
            [this] { note_first_step(); }, options_) {
    if (options_.replay_to > 0) {
        opened_.course().pause_after(options_.replay_to);
    } else {
        opened_.course().pause_at(options_.pause_at);
    }
}

void Run::begin() {
    if (opened_.facts().setup.found) {
        auto const& setup = opened_.facts().setup;
        state_.restore();
        if (setup.in_memory) {
            setup.in_memory->close();
            // Without the directory there is none to write at once.
            bool const without =
                comm::all_reduce(world_, setup.without.empty() ? 0 : 1, comm::Reduce::maximum) != 0;
            checkpoints_.resumed(without ? std::max<std::int64_t>(setup.newest_file, 0)
                                         : setup.newest_file);
        } else if (!setup.foreign) { // else the run gets one of its own at once
            checkpoints_.resumed(progress_.step);
        }
    }
    finished_before_ = finished_before();
    if (finished_before_) {
        departure_.end("already finished"); // no attempt: nothing is written or told of it
        return;
    }
    comm::agree(world_, "beginning the records", [&] {
        if (world_.is_root() && opened_.facts().setup.without.empty()) {
            write_text_durably(opened_.facts().setup.directory->path() / "deck.ini",
                               config::to_text(opened_.facts().deck()));
        }
        if (world_.is_root() && options_.observers) {
            observers_.set(options_.observers(opened_.facts().deck()));
        }
    });
    announce(opened_, options_, state_.forced(), progress_, observers_);
    if (options_.begun) {
        options_.begun();
    }
    if (options_.replay_to > 0) {
        return; // what it goes back to is there
    }
    checkpoints_.begin();
    copies_.begin();
}

void Run::note_first_step() const {
    if (options_.stepped) {
        options_.stepped();
    }
    if (!opened_.facts().setup.without.empty()) { // for a launch that looks at records
        notice(concat("the run continues at step ", progress_.step, " without its directory"));
    }
}

bool Run::finished_before() const {
    bool finished = false;
    comm::agree(world_, "reading the records of the run", [&] {
        finished = world_.is_root() && opened_.facts().setup.found &&
                   is_finished(progress_, opened_.course().is_done(progress_),
                               opened_.data().has(DataModule::Set::test),
                               opened_.facts().deck().run.directory);
    });
    return comm::all_reduce(world_, finished ? 1 : 0, comm::Reduce::maximum) != 0;
}

bool Run::train_epoch() {
    auto const before = progress_.step;
    if (!departure_.is_decided()) {
        watched([&] {
            comm::in_phase(world_, comm::Phase::train,
                           [&] { checkpoints_.settling([&] { loop_.run_epoch(); }); });
        });
    }
    return progress_.step > before;
}

std::optional<Measured> Run::measure_validation() {
    bool const leaves = departure_.is_decided() && !finished_before_;
    if (leaves || !opened_.data().has(DataModule::Set::validation)) {
        return std::nullopt;
    }
    return watched(
        [&] { return checkpoints_.settling([&] { return evaluation_.measure_validation(); }); });
}

void Run::save_newest() {
    watched([&] { checkpoints_.save_newest(); });
}

void Run::settle_audit() {
    if (!departure_.is_decided()) {
        opened_.audit().settle(totals_.steps >= opened_.course().steps_per_epoch());
    }
}

Ended Run::finish() {
    return watched([&] { return finished(); });
}

Ended Run::finished() {
    if (!finished_before_) {
        comm::in_phase(world_, comm::Phase::train, [&] {
            checkpoints_.settling([&] {
                settle_audit();
                checkpoints_.save_newest(); // the last one: its failure is the run's
            });
        });
        copies_.end();
        loop_.close();
        if (!departure_.is_decided() && options_.pause_at < 1 &&
            !opened_.course().is_done(progress_) && opened_.course().is_at_rest(progress_)) {
            departure_.end("paused");
        }
        if (auto const early = early_stop(); !departure_.is_decided() && !early.empty()) {
            observers_.tell(Remark{concat("stopped early at step ", progress_.step, " of ",
                                          opened_.course().total_steps(), ": ", early)});
        }
        if (!departure_.is_decided()) {
            evaluation_.test();
        }
        if (!departure_.is_decided()) {
            departure_.end(opened_.course().is_done(progress_) ? "finished" : "stopped");
        }
    }
    return comm::in_phase(world_, comm::Phase::reporting, [&] {
        auto ended = summary();
        if (!finished_before_ && opened_.course().in_epoch(progress_.step) > 0) {
            ended.unfinished = records_.unfinished_epoch();
        }
        ended.epsilon = state_.epsilon(progress_.step);
        if (ended.epsilon) {
            observers_.tell(Remark{concat("epsilon is ", *ended.epsilon, " at delta ",
                                          opened_.facts().deck().privacy.delta, " after ",
                                          count_text(progress_.step), " steps")});
        }
        if (auto const& metric = best_.never_finite(); !metric.empty()) {
            observers_.tell(Remark{concat("warning: there is no best.h5, because ", metric,
                                          " was not finite in any validation")});
        }
        observers_.tell(ended);
        return ended;
    });
}

std::string Run::early_stop() const {
    return opened_.course().is_early(progress_)
               ? opened_.course().early_stopping().text(opened_.work().best_metric.name)
               : "";
}

Ended Run::summary() {
    auto const& totals = totals_;
    auto const per_second = [&](double what) {
        return totals.training_s > 0 ? what / totals.training_s : 0;
    };
    return {.reason = departure_.reason(),
            .step = progress_.step,
            .steps_done = totals.steps,
            .seconds = watch_.seconds(),
            .samples_per_s = per_second(static_cast<double>(totals.samples)),
            .communication_share = per_second(totals.communication_s),
            .imbalance_share = per_second(totals.imbalance_s),
            .peak_memory = comm::all_reduce(world_, peak_memory(), comm::Reduce::maximum),
            .best_metric = opened_.work().best_metric.name,
            .best = progress_.best,
            .best_step = progress_.best_step,
            .best_is_kept = best_.is_kept(),
            .resources = resources_.in_all(),
            .early_stop = early_stop()};
}

} // namespace lockstep::train
