#include "checkpoint_advice.hpp"

#include "base/file.hpp"
#include "base/text.hpp"
#include "comm/agree.hpp"
#include "h5/element_type.hpp"

#include <algorithm>
#include <cmath>

namespace lockstep::train {

namespace {

/// Between SIGTERM and SIGKILL: Slurm's KillWait where nobody changed it.
constexpr double grace_s = 30;

/// How often one host fails. No run knows it of its hosts: a round number, said with the advice.
constexpr double days_between_failures = 30;

} // namespace

void CheckpointAdvice::warn_of_space() const {
    if (!parts_.world.is_root()) {
        return;
    }
    if (auto const failure = comm::failure_of([this] { compare_space(); })) {
        parts_.observers.tell(
            Remark{concat("warning: cannot tell whether the disk has room for the checkpoints: ",
                          failure->what())});
    }
}

void CheckpointAdvice::compare_space() const {
    std::uint64_t bytes = 0;
    for (auto const& array : parts_.state.snapshot().arrays) {
        bytes += array.elements * h5::size_of(array.type);
    }
    auto const& directory = parts_.store.directory();
    auto const files = static_cast<std::uint64_t>(parts_.keep) + 1; // one being written
    auto const free = free_space(directory);
    if (files * bytes > free) {
        parts_.observers.tell(Remark{concat(
            "warning: checkpoint.keep = ", parts_.keep, " needs room for ", files, " files of ",
            bytes_text(bytes), " each (including the checkpoint that is being written), but only ",
            bytes_text(free), " is free in ", directory.string(),
            ". Free some space, or lower checkpoint.keep")});
    }
}

void CheckpointAdvice::warn_of_time(double seconds) const {
    if (seconds > grace_s) {
        parts_.observers.tell(
            Remark{concat("warning: a checkpoint takes ", fixed(seconds, 1),
                          " s, but schedulers often leave only ", fixed(grace_s, 0),
                          " s between the signal and the kill: ask for an earlier signal, for "
                          "example with sbatch --signal=USR1@",
                          std::llround(3 * seconds))});
    }
}

/// After Young (1974) and Daly (2006): the root of twice what one costs by the mean time between
/// failures.
void CheckpointAdvice::advise_interval(double cost_s) {
    auto const& totals = parts_.totals;
    if (advised_ || totals.steps == 0) {
        return;
    }
    advised_ = true;
    auto const hosts = static_cast<double>(parts_.topology.hosts.size());
    auto const failure_s = days_between_failures * 86400 / hosts;
    auto const interval_s = std::sqrt(2 * cost_s * failure_s);
    auto const step_s = totals.training_s / static_cast<double>(totals.steps);
    if (static_cast<double>(parts_.course.total_steps()) * step_s < interval_s) {
        return; // it is over before the first of them
    }
    parts_.observers.tell(
        Remark{concat("advice: write a checkpoint every ", duration_text(interval_s), " (about ",
                      std::max<std::int64_t>(std::llround(interval_s / step_s), 1),
                      " steps). A checkpoint stops training for ", duration_text(cost_s), ", and ",
                      hosts, hosts == 1 ? " host is" : " hosts are each",
                      " assumed to fail once in ", days_between_failures, " days")});
}

} // namespace lockstep::train
