#include "base/file.hpp"
#include "base/text.hpp"
#include "checkpoint/reader.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "comm/heartbeats.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/comm/session.hpp"

#include <algorithm>
#include <cmath>

#include "run.hpp"
#include "same_data.hpp"

namespace lockstep::train {

namespace {

/// Between SIGTERM and SIGKILL: Slurm's KillWait where nobody changed it.
constexpr double grace_s = 30;

/// How often one host fails. No run knows it of its hosts: a round number, said with the advice.
constexpr double days_between_failures = 30;

} // namespace

bool of_the_disk(Error const& failure) {
    return failure.code() == ExitCode::io || failure.code() == ExitCode::cannot_create;
}

void Run::require_same_code(checkpoint::Reader const& reader) const {
    auto const now = static_cast<std::int64_t>(work_.model->fingerprint());
    if (integer_of(reader.record(), "model", now) != now && !options_.force) {
        throw Error(ExitCode::usage,
                    {concat("model.name = ", deck_.model.name, " is not what this run began with"),
                     "the file's contents have changed",
                     "Bring the old file back, allow it with --force, or start over with "
                     "--checkpoint.resume none"});
    }
}

std::unique_ptr<data::Audit> Run::audit_of_data() const {
    return std::make_unique<data::Audit>(std::vector<data::Dataset const*>{
        of_environment_.get(), work_.train.get(), work_.validation.get(), work_.test.get()});
}

/// One rank of each host looks at all bytes once; rank 0's record is kept.
void Run::make_audit() {
    if (topology_.local_rank != 0) {
        return;
    }
    if (work_.environment && !trimmed(deck_.data.train).empty()) {
        of_environment_ =
            std::make_unique<data::Dataset>(data::DatasetOptions{.files = deck_.data.train});
    }
    audit_ = audit_of_data();
    std::ranges::for_each(audit_->remarks(), [&](auto const& text) { remark(text); });
}

/// Before a run says that it is done, it knows that what it learnt from was whole; but does not
/// wait long for more than it read.
void Run::settle_audit() {
    constexpr std::uint64_t little = std::uint64_t{1} << 30;
    if (!ended_.reason.empty()) {
        return;
    }
    comm::agree(world_, "looking at the data", [&] {
        bool const whole_epoch = ended_.steps_done >= data_module_->steps_per_epoch();
        if (audit_ && (whole_epoch || audit_->bytes() <= little)) {
            audit_->finish();
        }
    });
}

void Run::require_same_data(checkpoint::Reader const& reader) {
    auto const& notes = reader.record().notes;
    auto const known = notes.find("data");
    bool const comparable = audit_ && world_.is_root() && known != notes.end();
    auto const require_same = [&] {
        train::require_same_data(reader, data_module_->fingerprint(), work_.train.get());
    };
    if (options_.force) {
        // An audit of its own: the run's shall not look for the old contents.
        bool const changed =
            comm::failure_of(require_same) ||
            (comparable && comm::failure_of([&] { audit_of_data()->compare(known->second); }));
        if (changed) {
            setup_.forced.emplace_back("other contents of data.train");
        }
        return;
    }
    if (comparable) {
        audit_->compare(known->second);
    }
    require_same();
}

/// Values of another metric, or of other samples, say nothing of which model is the best.
void Run::require_same_measure(checkpoint::Record const& record) {
    auto const chosen_by = record.notes.find("best_metric"); // older checkpoints do not tell
    bool const other_metric =
        chosen_by != record.notes.end() && chosen_by->second != work_.best_metric.name;
    bool const other_samples =
        work_.validation && integer_of(record, "validation", validation_hash_) != validation_hash_;
    if (other_samples) {
        remark("warning: data.validation is not what it was: the best model is chosen again");
    } else if (other_metric) {
        remark(concat("the best model is chosen again: it was chosen by ", chosen_by->second,
                      ", and is by ", work_.best_metric.name, " from here on"));
    }
    if (other_samples || other_metric) {
        progress_.best_step = -1;
    }
}

void Run::restore() {
    if (!setup_.found) {
        return;
    }
    comm::agree(world_, "reading the checkpoint", [&] {
        checkpoint::Reader const reader(setup_.found->file);
        require_same_data(reader);
        require_same_code(reader);
        auto const fresh = engine_->state().restore(reader, setup_.shares_state);
        restore_replica_arrays(reader, data_module_->state(),
                               engine_->nodes()[static_cast<std::size_t>(world_.rank())],
                               deck_.run.replicas);
        progress_ = Progress::read_from(reader.record());
        require_same_measure(reader.record());
        engine_->loss_scale().restore(real_of(reader.record(), "loss_scale"),
                                      integer_of(reader.record(), "loss_scale_growth"),
                                      integer_of(reader.record(), "skipped_steps"));
        engine_->set_steps_of_others(setup_.shares_state
                                         ? integer_of(reader.record(), "steps_of_others", 0)
                                         : progress_.step - engine_->loss_scale().skipped());
        if (!fresh.empty()) {
            remark(concat("not as in the checkpoint, these start over: ", joined(fresh, ", ")));
        }
    });
    data_module_->restored(progress_.step);
    saved_step_ = progress_.step;
}

/// Rank 0 looks before it is too late to clear up; a look that fails is no failure of the run.
void Run::warn_of_space() {
    if (!world_.is_root()) {
        return;
    }
    if (auto const failure = comm::failure_of([this] { compare_space(); })) {
        tell(Remark{concat("warning: whether the disk has room for the checkpoints is not known: ",
                           failure->what())});
    }
}

void Run::compare_space() {
    std::uint64_t bytes = 0;
    for (auto const& array : snapshot().arrays) {
        bytes += array.elements * h5::size_of(array.type);
    }
    auto const files = static_cast<std::uint64_t>(deck_.checkpoint.keep) + 1; // one being written
    auto const free = free_space(store_.directory());
    if (files * bytes > free) {
        tell(Remark{concat("warning: checkpoint.keep = ", deck_.checkpoint.keep, " takes ", files,
                           " files of ", bytes_text(bytes), ", and ", bytes_text(free),
                           " are free at ", store_.directory().string(),
                           ": free space, or keep fewer")});
    }
}

void Run::warn_of_time(double seconds) const {
    if (seconds > grace_s) {
        tell(Remark{concat("warning: a checkpoint takes ", fixed(seconds, 1),
                           " s, and schedulers often leave ", fixed(grace_s, 0),
                           " s between asking and killing: ask for a longer notice, such as "
                           "sbatch --signal=USR1@",
                           std::llround(3 * seconds))});
    }
}

/// The interval between checkpoints at which least time is lost, after Young (1974) and Daly
/// (2006): the root of twice what one costs by the mean time between failures.
void Run::advise_interval(double cost_s) {
    if (advised_ || ended_.steps_done == 0) {
        return;
    }
    advised_ = true;
    auto const hosts = static_cast<double>(topology_.hosts.size());
    auto const failure_s = days_between_failures * 86400 / hosts;
    auto const interval_s = std::sqrt(2 * cost_s * failure_s);
    auto const step_s = training_s_ / static_cast<double>(ended_.steps_done);
    if (static_cast<double>(total_steps_) * step_s < interval_s) {
        return; // it is over before the first of them
    }
    tell(Remark{concat("advice: a checkpoint stops training for ", duration_text(cost_s), "; with ",
                       hosts, hosts == 1 ? " host that fails" : " hosts that fail", " once in ",
                       days_between_failures, " days (assumed) the best interval is ",
                       duration_text(interval_s), ", about ",
                       std::max<std::int64_t>(std::llround(interval_s / step_s), 1), " steps")});
}

/// Memory for the copies is got here, not in the first step that a checkpoint follows.
void Run::make_background_writer() {
    if (!deck_.checkpoint.asynchronous) {
        return;
    }
    if (!comm::all_ranks(world_, comm::threads_may_speak())) {
        tell(Remark{"checkpoints are synchronous: MPI does not grant MPI_THREAD_MULTIPLE here"});
        return;
    }
    background_ = std::make_unique<checkpoint::BackgroundWriter>(world_);
    comm::agree(world_, "getting memory for checkpoints",
                [&] { background_->reserve(snapshot()); });
}

checkpoint::Snapshot Run::snapshot() {
    auto snapshot = engine_->state().snapshot();
    add_replica_arrays(snapshot, data_module_->state(),
                       engine_->nodes()[static_cast<std::size_t>(world_.rank())],
                       deck_.run.replicas);
    snapshot.record = record();
    return snapshot;
}

/// Writes one while all wait; a failure is the caller's.
void Run::save_checkpoint() {
    comm::PhaseScope const phase(world_, comm::Phase::checkpoint);
    settle_background();
    auto const written = store_.save(world_, snapshot(), progress_.step, attempt_);
    saved_step_ = progress_.step;
    checkpoint_watch_.restart();
    walltime_.checkpoint_took(written.seconds);
    tell(CheckpointWritten{progress_.step, written.path.string(), written.bytes, written.seconds,
                           written.seconds, written.collective});
    if (progress_.step == 0) {
        warn_of_time(written.seconds);
    }
    advise_interval(written.seconds);
}

/// One of this step, unless there is one.
void Run::save_newest() {
    settle_background();
    if (saved_step_ != progress_.step) {
        save_checkpoint();
    }
}

/// One between the first and the last, which the run can do without. When the one before is still
/// being written this waits: a checkpoint that was skipped would need a reduction over all ranks,
/// and the run's files would depend on the speed of a disk.
void Run::save_in_background() {
    comm::PhaseScope const phase(world_, comm::Phase::checkpoint);
    if (!background_) {
        try {
            save_checkpoint();
        } catch (AgreedError const& failure) {
            if (!of_the_disk(failure)) {
                throw;
            }
            tell_failed(progress_.step, failure);
        }
        return;
    }
    settle_background();
    background_->start(snapshot(), store_, progress_.step, attempt_);
    checkpoint_watch_.restart();
}

/// Waits for the write in flight, after which all ranks know the same of it.
void Run::settle_background() {
    if (background_) {
        note_background(background_->wait());
    }
    if (background_failure_) {
        throw *std::exchange(background_failure_, std::nullopt);
    }
}

void Run::note_background(std::optional<checkpoint::Outcome> const& outcome) {
    if (!outcome) {
        return;
    }
    if (auto const& written = outcome->written) {
        saved_step_ = outcome->step;
        walltime_.checkpoint_took(written->seconds);
        tell(CheckpointWritten{outcome->step, written->path.string(), written->bytes,
                               written->seconds, outcome->stall_s, written->collective});
        advise_interval(outcome->stall_s);
    } else if (of_the_disk(*outcome->failure)) {
        tell_failed(outcome->step, *outcome->failure);
    } else {
        background_failure_ = outcome->failure; // thrown when all ranks know it
    }
}

void Run::tell_failed(std::int64_t step, AgreedError const& failure) {
    tell(CheckpointFailed{step, failure.cause(), failure.what(),
                          world_.is_root() && !store_.list().empty()});
}

} // namespace lockstep::train
