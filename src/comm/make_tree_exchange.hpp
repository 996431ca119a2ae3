#pragma once

#include "comm/exchange.hpp"
#include "comm/host_layout.hpp"
#include "comm/replica_tree.hpp"
#include "comm/rounding.hpp"
#include "comm/route.hpp"
#include "lockstep/comm/communicator.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::comm {

struct TreeExchangeOptions {
    std::vector<TreeNode> nodes; ///< the subtree of each rank
    Partition partition{0, 1, reduction_block, reduction_block};
    std::size_t step_sums = 0;    ///< most values that are summed at once
    std::size_t payload = 0;      ///< its largest size in bytes
    bool sums_everywhere = false; ///< not only a rank's own shards; parameters are private then
    /// Gradients, but for the sums of a rank's own shards, have memory only from the moment when
    /// backward writes them until they have been added up.
    bool shards_gradients = false;
    /// Parameters of other hosts' shards have memory only while they are lent.
    bool shards_parameters = false;
    Rounding rounding =
        Rounding::none; ///< of gradients, which must be rounded already, and of every sum
    double timeout_seconds = 300;
    HostLayout hosts{};
    std::optional<Route> route{}; ///< between hosts; none: the faster one, by a model
};

/// The ordered exchange in host memory. Each rank sums its shards of all replicas' gradients, in
/// tree order. Within a host it reads the others' arrays where they lie, in shared memory, and the
/// parameters are one array for the whole host. Between hosts, each host first sums what its ranks
/// hold of a shard, and sends the result to the rank that owns the shard: as many bytes as in the
/// best reduce-scatter where hosts hold whole subtrees (Rabenseifner 2004 for the volume; the
/// direct exchange keeps the order of the sum for any number and size of hosts).
///
/// Where sums are rounded to 16 bits, they travel in 16 bits between hosts.
///
/// Where the ranks of a host cannot share memory, each is a host of its own; name() says so.
///
/// Collective  over `world`; so is its end
/// Throws      AgreedError
std::unique_ptr<Exchange> make_tree_exchange(Communicator const& world,
                                             TreeExchangeOptions const& options);

/// The same with threads as ranks: element r is for the thread that acts as rank r. For tests that
/// look for races.
///
/// `leader_of_rank`: as in `hosts_from`; empty: one host for all.
std::vector<std::unique_ptr<Exchange>>
make_thread_exchanges(TreeExchangeOptions const& options,
                      std::vector<int> const& leader_of_rank = {});

} // namespace lockstep::comm
