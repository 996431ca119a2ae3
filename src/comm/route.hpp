#pragma once

namespace lockstep::comm {

/// How the hosts' partials of a shard meet. The sums are those of the replica tree either way.
enum class Route {
    direct, ///< at the shard's owner: one round, a message to each other host
    halving ///< at each node of the tree: as many rounds as the tree of partials is deep
};

} // namespace lockstep::comm
