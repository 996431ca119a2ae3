#include "run.hpp"

#include "base/hash.hpp"
#include "base/inject.hpp"
#include "base/memory.hpp"
#include "base/text.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "comm/heartbeats.hpp"
#include "lockstep/base/error.hpp"
#include "task/remarks.hpp"
#include "train/device.hpp"

#include <algorithm>
#include <iterator>
#include <unistd.h>
#include <utility>

#include "add_to.hpp"
#include "course.hpp"
#include "data_cache.hpp"
#include "earlier_records.hpp"
#include "first_weights.hpp"
#include "make_data_module.hpp"
#include "placement.hpp"
#include "validation_share.hpp"

namespace lockstep::train {

Run::Run(comm::Communicator const& world, RunOptions options, SignalRequests const& signals)
    : world_(world), options_(std::move(options)), signals_(signals),
      topology_(comm::Topology::discover(world)), setup_(set_up_run(world, options_)),
      deck_(setup_.deck),
      store_(
          std::filesystem::path(deck_.run.directory) / "checkpoints",
          static_cast<int>(deck_.checkpoint.keep),
          // A write in the background may outlive this object.
          [directory = setup_.directory] { directory->require_ours(); }, setup_.local),
      walltime_(world.is_root() ? Walltime(options_.seconds_left, options_.seconds_of_job)
                                : Walltime()) {
    keep_large_blocks();
    comm::PhaseScope const phase(world_, comm::Phase::start_up);
    comm::agree(world_, "start-up", [&] {
        require_known_fault();
        device_ = choose_device(deck_.run, topology_);
        configure_torch(deck_.run);
        remark(configure_precision(deck_.precision, deck_.run.deterministic));
        if (!deck_.communication.broadcast_buffers && deck_.run.replicas > 1) {
            remark("each replica keeps its own buffers: replica 0's are measured and exported");
        }
        if (world_.is_root()) {
            File::append(setup_.directory->path() / "log.txt"); // what goes wrong is told there
        }
    });
    comm::agree(world_, "opening the data and the model", [&] {
        auto const share = memory_to_train_in(device_, topology_.local_size);
        if (device_.is_cpu()) {
            limit_memory(share);
        }
        work_ = open_workload_within(deck_, world_.size(), share);
        if (auto const* task = dynamic_cast<task::Remarks const*>(work_.task.get())) {
            remark(task->remark(deck_.data, *work_.model));
        }
        for (auto& text : share_remarks(deck_, work_)) {
            remark(std::move(text));
        }
        if (world_.is_root() && work_.validation) {
            validation_hash_ = static_cast<std::int64_t>(data::Audit::hash_of(*work_.validation) >>
                                                         1); // none is negative
        }
    });
    validation_hash_ = comm::all_reduce(world_, validation_hash_, comm::Reduce::maximum);
    auto const nodes = place_replicas();
    comm::agree(world_, "planning the run", [&] {
        data_module_ = make_data_module(
            {world_, deck_, work_, nodes[static_cast<std::size_t>(world_.rank())], device_});
        total_steps_ =
            total_steps(deck_.train, data_module_->steps_per_epoch(), data_module_->max_steps());
        schedule_.emplace(deck_, data_module_->steps_per_epoch(), total_steps_);
        make_audit();
    });
    if (setup_.requeued) {
        remark(concat("checkpoint.resume = ", deck_.checkpoint.resume,
                      " was for this job's first attempt: this one resumes from there"));
    }
    if (!setup_.found && world_.is_root()) {
        remark(lost_checkpoints(deck_.run.directory));
    }
    if (!setup_.found && !deck_.model.weights.empty()) {
        remark(load_first_weights(world_, *work_.model, deck_.model.weights));
    }
    keep_near(deck_.data, {work_.train.get(), work_.validation.get(), work_.test.get()}, world_);
    auto const devices = concurrent_devices(deck_.run, world_.size());
    engine_ = std::make_unique<Engine>(
        Engine::Parts{.world = world_,
                      .deck = deck_,
                      .model = *work_.model,
                      .task = *work_.task,
                      .device = device_,
                      .another = [this] { return another_model(deck_, work_); },
                      .nodes = nodes,
                      .devices = devices});
    if (!devices.empty()) {
        std::vector<std::string> names;
        std::ranges::transform(devices, std::back_inserter(names), device_text);
        remark(concat("concurrent replicas on ", joined(names, ", ")));
    }
    attempt_ = concat(utc_now(), "-", ::getpid());
    comm::broadcast_text(world_, attempt_);
    std::replace(attempt_.begin(), attempt_.end(), ':', '-');
    begin();
}

void Run::remark(std::string text) {
    if (!text.empty()) {
        remarks_.push_back(std::move(text));
    }
}

std::vector<comm::TreeNode> Run::place_replicas() {
    auto const replicas = static_cast<int>(deck_.run.replicas);
    if (deck_.run.placement == "even") {
        return comm::subtrees_of_ranks(replicas, world_.size());
    }
    auto alone = deck_;
    alone.communication.sync_batch_norm = false;
    return comm::subtrees_by_speed(replicas,
                                   measured_speeds(world_, alone, another_model(alone, work_),
                                                   *work_.task, work_.samples, device_));
}

void Run::begin() {
    restore();
    if (finished_before()) {
        ended_.reason = "already finished"; // no attempt: nothing is written or told of it
        return;
    }
    comm::agree(world_, "beginning the records", [&] {
        if (world_.is_root()) {
            write_text_durably(setup_.directory->path() / "deck.ini", config::to_text(deck_));
            observers_ = options_.observers(deck_);
        }
    });
    announce();
    if (options_.begun) {
        options_.begun();
    }
    if (!setup_.found) {
        warn_of_space();
        save_checkpoint(); // from here on there is always one to go back to
    }
    make_background_writer();
}

/// A failure that all ranks know of is told after the checkpoint that is being written, if there is
/// one: so nothing of this run is under way when it leaves.
template <class Work>
auto Run::settling(Work const& work) {
    try {
        return work();
    } catch (AgreedError const&) {
        if (background_) {
            note_background(background_->wait()); // all ranks are there: it ends
        }
        throw;
    }
}

template <class Work>
void Run::training(Work const& work) {
    comm::PhaseScope const phase(world_, comm::Phase::train);
    settling(work);
}

std::optional<Measured> Run::measure_validation() {
    if (!data_module_->has(DataModule::Set::validation)) {
        return std::nullopt;
    }
    return settling([&] {
        comm::PhaseScope const phase(world_, comm::Phase::validation);
        auto const averaged = engine_->averaged_weights();
        return measure(DataModule::Set::validation);
    });
}

void Run::open_batches() {
    if (audit_) {
        audit_->start();
    }
    batches_ = data_module_->batches(progress_.step, total_steps_);
    pictured_.emplace(*batches_, wanted_pictures(), channels_last());
    agree_to_leave(); // whoever was signalled while we started
    if (progress_.owes_validation && ended_.reason.empty()) {
        validate();
        saved_step_ = -1; // the checkpoint says that it is owed
    }
}

bool Run::train_epoch() {
    auto const before = progress_.step;
    if (ended_.reason.empty()) {
        training([&] {
            if (!batches_) {
                open_batches();
            }
            while (!over()) {
                take_step();
                if (progress_.step % data_module_->steps_per_epoch() == 0) {
                    break;
                }
            }
        });
    }
    return progress_.step > before;
}

void Run::take_step() {
    Stopwatch watch;
    auto const outcome = one_step();
    account(outcome, watch.seconds());
    if (auto const pictures = pictured_->take(); !pictures.empty()) {
        tell(Pictures{progress_.step, pictures});
    }
    after_step(outcome);
    if (options_.stepped) {
        std::exchange(options_.stepped, nullptr)();
    }
}

Ended Run::finish() {
    if (ended_.reason != "already finished") {
        training([&] {
            settle_audit();
            save_newest(); // the last one: its failure is the run's
        });
        pictured_.reset();
        batches_.reset();
        if (ended_.reason.empty()) {
            test();
        }
        if (ended_.reason.empty()) {
            ended_.reason = done() ? "finished" : "stopped";
        }
    }
    comm::PhaseScope const phase(world_, comm::Phase::reporting);
    ended_.step = progress_.step;
    ended_.seconds = attempt_watch_.seconds();
    ended_.samples_per_s = training_s_ > 0 ? static_cast<double>(samples_done_) / training_s_ : 0;
    ended_.communication_share = training_s_ > 0 ? communication_s_ / training_s_ : 0;
    ended_.imbalance_share = training_s_ > 0 ? imbalance_s_ / training_s_ : 0;
    ended_.peak_memory = comm::all_reduce(world_, peak_memory(), comm::Reduce::maximum);
    ended_.best_metric = work_.best_metric.name;
    ended_.best = progress_.best;
    ended_.best_step = progress_.best_step;
    tell(ended_);
    return ended_;
}

StepOutcome Run::one_step() {
    auto const in_epoch = progress_.step % data_module_->steps_per_epoch();
    auto const minutes = deck_.checkpoint.every_minutes;
    try {
        comm::set_step(world_, progress_.step + 1);
        auto const damage = inject_fault(world_.rank(), progress_.step + 1);
        if (audit_) {
            audit_->require_good();
        }
        data_module_->prepare(progress_.step);
        auto outcome = engine_->step(
            {.batches = *pictured_,
             .step = progress_.step,
             .micro_batches = data_module_->micro_batches(in_epoch),
             .samples = data_module_->samples_in_step(in_epoch),
             .rate = schedule_->rate(progress_.step),
             .signal = asked_to_leave(),
             .minutes_passed = minutes > 0 && checkpoint_watch_.seconds() > 60 * minutes,
             .poison = damage == Damage::nan,
             .histograms =
                 wants_histograms("gradients") && in_epoch + 1 == data_module_->steps_per_epoch()});
        if (damage == Damage::bit_flip) {
            engine_->flip_bit();
        }
        return outcome;
    } catch (Diverged const&) { // which data can be the cause of
        comm::agree(world_, concat("the samples of step ", progress_.step + 1),
                    [&] { data_module_->require_finite(progress_.step); });
        throw;
    } catch (AgreedError const&) {
        throw;
    } catch (...) {
        throw RankError(current_error(), concat("training at step ", progress_.step + 1));
    }
}

void Run::account(StepOutcome const& outcome, double step_s) {
    auto const in_epoch = progress_.step % data_module_->steps_per_epoch();
    auto const samples = data_module_->samples_in_step(in_epoch);
    auto const rate = schedule_->rate(progress_.step);
    ++progress_.step;
    progress_.epoch_loss_sum += outcome.loss_sum;
    progress_.epoch_weight += outcome.weight;
    add_to(progress_.epoch_figures, outcome.figures);
    add_to(progress_.epoch_counts, outcome.counts);
    ++ended_.steps_done;
    samples_done_ += samples;
    epoch_samples_ += samples;
    training_s_ += step_s;
    walltime_.step_took(step_s);
    communication_s_ += outcome.exchange.exposed_s;
    imbalance_s_ += outcome.exchange.imbalance_s;
    bool const logged =
        progress_.step % deck_.monitor.log_every == 0 || progress_.step == 1 || done();
    stragglers_.add(outcome.waited_s, step_s);
    auto const straggler = logged ? stragglers_.report() : Stragglers::Report{};
    auto const memory = logged ? device_memory(device_) : DeviceMemory{};
    auto const weights =
        logged && deck_.monitor.weight_hash ? std::optional(engine_->hash_weights()) : std::nullopt;
    tell(Step{.step = progress_.step,
              .total_steps = total_steps_,
              .epoch = epochs_after(progress_.step),
              .loss = outcome.loss_sum / outcome.weight,
              .figures = figures_of(outcome.figures, outcome.weight),
              .learning_rate = rate,
              .grad_norm = outcome.grad_norm,
              .samples = samples,
              .logged = logged,
              .step_s = step_s,
              .data_s = outcome.local.data,
              .forward_s = outcome.local.forward,
              .backward_s = outcome.local.backward,
              .communication_s = outcome.exchange.exposed_s,
              .imbalance_s = outcome.exchange.imbalance_s,
              .hidden_s = outcome.exchange.hidden_s,
              .straggler = straggler.rank,
              .straggler_s = straggler.late_s,
              .straggler_stays = straggler.stays,
              .exchanged_bytes = outcome.exchange.bytes,
              .update_s = outcome.update_s,
              .loss_scale = outcome.loss_scale,
              .skipped = outcome.skipped,
              .weight_hash = weights ? hex(weights->value) : std::string(),
              .diverged = weights ? weights->diverged : std::string(),
              .device_memory = memory.allocated,
              .device_memory_reserved = memory.reserved,
              .device_memory_peak = memory.peak});
    if (weights && !weights->diverged.empty() && !std::exchange(diverged_, true)) {
        tell(Remark{
            concat("warning: after step ", progress_.step, " the weights of ", weights->diverged)});
    }
}

void Run::after_step(StepOutcome const& outcome) {
    if (background_) {
        note_background(background_->poll());
    }
    auto const every = deck_.communication.check_replicas_every;
    if (every > 0 && progress_.step % every == 0) {
        engine_->check_replicas(progress_.step);
    }
    if (!outcome.gradients.empty()) {
        tell(Histograms{progress_.step, "gradients", outcome.gradients});
    }
    bool const epoch_ends = progress_.step % data_module_->steps_per_epoch() == 0;
    if (epoch_ends) {
        end_epoch();
    }
    auto const validate_every = deck_.train.validate_every;
    bool const validation_due =
        validate_every > 0 ? progress_.step % validate_every == 0 : epoch_ends;
    progress_.owes_validation =
        data_module_->has(DataModule::Set::validation) && (validation_due || done());
    if (outcome.signal != 0) {
        leave(outcome.signal, outcome.signalled_rank);
    } else if (progress_.owes_validation) {
        validate();
    }
    auto const every_steps = deck_.checkpoint.every_steps;
    bool const due = every_steps > 0 && progress_.step % every_steps == 0;
    if ((due || outcome.minutes_passed) && ended_.reason.empty() && !done()) {
        save_in_background();
    }
}

int Run::asked_to_leave() const {
    auto const signal = signals_.pending();
    return signal != 0 ? signal : walltime_.reason();
}

/// What a step's sums tell, where there is no step to carry it.
bool Run::agree_to_leave() {
    auto const asked = comm::all_gather(world_, asked_to_leave());
    auto const first = std::find_if(asked.begin(), asked.end(), [](int each) { return each != 0; });
    if (first != asked.end()) {
        leave(*first, static_cast<int>(first - asked.begin()));
    }
    return first != asked.end();
}

void Run::leave(int signal, int rank) {
    if (signal == job_too_short && ended_.steps_done == 0) {
        // A new job would come no further, and job scripts would start one after the other.
        throw AgreedError(
            ExitCode::usage,
            {"the job's time is over before its first step",
             "starting up, a step and a checkpoint do not fit into a job as long as this one",
             "Ask for more time (sbatch --time, qsub -l walltime, run.walltime-seconds)"},
            rank, concat(comm::place_of_rank(world_, rank), " in training"));
    }
    ended_.reason = signal_name(signal);
    tell(Signalled{progress_.step, ended_.reason, rank});
}

double Run::epochs_after(std::int64_t step) const {
    return static_cast<double>(step) / static_cast<double>(data_module_->steps_per_epoch());
}

void Run::tell(Event const& event) const {
    for (auto const& observer : observers_) {
        observer->on(event);
    }
}

} // namespace lockstep::train
