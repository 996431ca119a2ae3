#pragma once

#include "lockstep/comm/communicator.hpp"

#include <algorithm>
#include <vector>

namespace lockstep::comm {

/// Which ranks share memory, seen from one of them.
struct Hosts {
    std::vector<int> of_rank;
    std::vector<std::vector<int>> ranks; ///< of each host, ascending

    int local(int rank) const {
        auto const& group = ranks[static_cast<std::size_t>(host(rank))];
        return static_cast<int>(std::find(group.begin(), group.end(), rank) - group.begin());
    }
    int host(int rank) const { return of_rank[static_cast<std::size_t>(rank)]; }
    int count() const { return static_cast<int>(ranks.size()); }
    /// The rank of a host that works on `owner`'s shards there: the owner itself on its own.
    int delegate(int host, int owner) const {
        auto const& group = ranks[static_cast<std::size_t>(host)];
        return group[static_cast<std::size_t>(local(owner)) % group.size()];
    }
};

/// `leader_of_rank`: some rank of each rank's host, the same for all ranks of a host.
Hosts hosts_from(std::vector<int> const& leader_of_rank);

/// Ranks that fill one host after the other, `ranks_per_host` on each.
Hosts filled_hosts(int ranks, int ranks_per_host);

/// The first rank of each rank's host.
///
/// Collective  over `world`
std::vector<int> leaders(Communicator const& world, Communicator const& host);

} // namespace lockstep::comm
