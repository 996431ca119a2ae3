#include "host_checks.hpp"

#include "base/text.hpp"
#include "comm/agree.hpp"

#include <algorithm>

#include "suspect_steps.hpp"

namespace lockstep::train {

void HostChecks::begin() {
    if (facts_.compares) {
        for (auto const& host : facts_.topology.hosts) {
            progress_.sound_hosts.try_emplace(host, progress_.step);
        }
    }
}

std::optional<ComputeCheck::Due> HostChecks::due(std::int64_t steps) const {
    auto const every = facts_.deck().check.compute_every;
    if (!facts_.compares || (steps + 1) % every != 0) {
        return std::nullopt;
    }
    return ComputeCheck::Due{.number = (steps + 1) / every, .batches = [this, steps](int replica) {
                                 return data_.batches_of(steps, replica);
                             }};
}

void HostChecks::passed(CheckedReplica const& checked, std::int64_t step) {
    for (auto const rank : {checked.owner, checked.second}) {
        progress_.sound_hosts[host_of(rank)] = step;
    }
}

void HostChecks::found(ComputedWrongly const& wrong) const {
    if (!facts_.world.is_root()) {
        return;
    }
    auto sound = progress_.step;
    for (auto const rank : wrong.suspects()) {
        sound = std::min(sound, progress_.sound_hosts.at(host_of(rank)));
    }
    auto const failure = comm::failure_of(
        [&] { note_suspect_steps(facts_.setup.directory->path() / "checkpoints", sound); });
    observers_.tell(Remark{
        failure ? concat("warning: a later start may continue from wrong values, because "
                         "checkpoints/suspect-after cannot be written: ",
                         failure->what(), ". Start from a checkpoint of step ", sound,
                         " or before, with --checkpoint.resume FILE")
                : concat("all steps after step ", sound,
                         ", the last one that was found right there, are suspect: the next start "
                         "sets their checkpoints aside")});
}

} // namespace lockstep::train
