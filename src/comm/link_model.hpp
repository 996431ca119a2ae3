#pragma once

#include "comm/hosts.hpp"
#include "comm/replica_tree.hpp"
#include "comm/route.hpp"

#include <vector>

#include "partial.hpp"

namespace lockstep::comm {

/// What a route asks of rank 0 for one bucket, on the way to the sums; the way back asks as much,
/// and so do the other ranks where hosts are alike.
struct RouteEffort {
    Route route = Route::direct;
    int rounds = 0;           ///< that wait for one another
    int messages = 0;         ///< sent and received
    double shards = 0;        ///< sent, of one rank's size
    double copied_shards = 0; ///< put together before they are sent
};

/// What messages between hosts cost.
struct LinkModel {
    double latency_s = 1e-5;   ///< from one host to another
    double message_s = 1.5e-6; ///< processor time to send or receive one
    double bytes_per_s = 3e9;  ///< of one rank
    double copy_per_s = 8e9;   ///< of one rank, in memory

    /// Units  seconds, for shards of `shard_bytes` bytes
    double seconds(RouteEffort const& effort, double shard_bytes) const;
};

/// Links between devices of several hosts; within a host they are faster, and the choice matters
/// less.
constexpr LinkModel device_link{
    .latency_s = 1e-5, .message_s = 1e-6, .bytes_per_s = 2.5e10, .copy_per_s = 5e11};

/// The route that `link` expects to be faster, with its effort. A pure function of its arguments,
/// so that all ranks find the same one. `partials`: all those of the tree; `hosts`: more than one.
RouteEffort faster_route(TreeNode root, std::vector<Partial> const& partials, Hosts const& hosts,
                         double shard_bytes, LinkModel const& link = {});

} // namespace lockstep::comm
