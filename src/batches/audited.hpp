#pragma once

#include "comm/agree.hpp"
#include "comm/topology.hpp"
#include "data/audit.hpp"
#include "lockstep/data/dataset.hpp"

#include <optional>
#include <vector>

namespace lockstep::train {

/// Calls `read`, which reads all of a set; meanwhile a rank of each host verifies the set's
/// checksums, as far as it has any.
///
/// Collective  over `world`
/// Throws      what `read` throws; Error 65 for a wrong checksum, after `read` has ended
/// Returns     what `read` returns
template <class Read>
auto audited(comm::Communicator const& world, comm::Topology const& topology,
             data::Dataset const& set, Read const& read) {
    std::optional<data::Audit> audit;
    comm::agree(world, "checking the data", [&] {
        if (topology.local_rank == 0) {
            audit.emplace(std::vector<data::Dataset const*>{&set}, set.viewers()).start();
        }
    });
    auto result = read();
    comm::agree(world, "checking the data", [&] {
        if (audit) {
            audit->finish();
        }
    });
    return result;
}

} // namespace lockstep::train
