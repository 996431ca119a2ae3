#pragma once

#include "comm/hosts.hpp"
#include "comm/replica_tree.hpp"
#include "comm/route.hpp"

#include <vector>

#include "partial.hpp"

namespace lockstep::comm {

/// What one rank sends, receives and adds up between hosts, the same for each bucket. The way back,
/// on which the owners' shards reach all hosts, consists of the same messages in reverse.
///
/// With `Route::halving` the hosts below a node of the tree share its sum among them: each holds
/// the sum of some shards. Where two children meet, each host keeps the shards that it holds at
/// their parent, and sends the others to the hosts that hold them there. That is recursive halving
/// (Rabenseifner 2004) whose partners follow the replica tree. For a power of two of equal hosts
/// each rank sends one message per round, of half the bytes of the one before; for other counts the
/// shards are dealt out evenly and in order, so that a host has few partners. A host sends each of
/// its partials' shards once at most, so that no more bytes travel than on the direct route.
///
/// A shard is always worked on by the same rank of a host (`Hosts::delegate`), so that the ranks of
/// a host need not wait for each other.
class HostSchedule {
  public:
    /// A shard of a child's sum.
    struct ChildShard {
        int child = 0; ///< of the stage
        int owner = 0; ///< the rank whose shard it is
        int at = 0;    ///< where a message arrives: its place among the stage's owners
    };
    struct Message {
        int partner = 0; ///< the rank at the other end
        int tag = 0;     ///< tells apart what the two send each other for one bucket
        std::vector<ChildShard> entries;
        std::vector<int> owners; ///< of the entries, each once: what travels on the way back
    };
    /// An inner node of the tree with partials of this host below it.
    struct Stage {
        TreeNode node;
        int depth = 0; ///< below the root
        std::vector<TreeNode> children;
        std::vector<int> homes;        ///< of each child's sum on this host; -1: none
        int home = 0;                  ///< of the node's sum
        std::vector<int> owners;       ///< whose shards this rank adds up here, ascending
        std::vector<Message> sends;    ///< before the addition, to those who add those shards up
        std::vector<Message> receives; ///< for the addition
    };

    /// None: one host.
    HostSchedule() = default;
    /// A pure function of its arguments. `partials`: those of the whole tree.
    HostSchedule(TreeNode root, std::vector<Partial> const& partials, Hosts const& hosts, int rank,
                 Route route);

    /// Children before parents; the last one is the root, for whose sum this rank holds its own
    /// shards.
    std::vector<Stage> const& stages() const noexcept { return stages_; }
    /// Whose shards this rank works on for its host, ascending.
    std::vector<int> const& served() const noexcept { return served_; }

  private:
    std::vector<Stage> stages_;
    std::vector<int> served_;
};

/// Rounds on the way to the sums: the most messages of any ranks that wait for one another.
int rounds_of(TreeNode root, std::vector<Partial> const& partials, Route route);

} // namespace lockstep::comm
