#pragma once

#include "arena/arena.hpp"
#include "arena/buffers.hpp"
#include "comm/replica_tree.hpp"
#include "lockstep/comm/communicator.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lockstep::train {

/// Compares the ranks' parameters and replica 0's buffers after a step: they are the same bits on
/// every rank, unless a memory or a processor is faulty. A change in an array that the ranks of a
/// host share is the same for all of them: it is detected only on other hosts. What it is given
/// outlives it.
class ReplicaCheck {
  public:
    /// Not collective
    ReplicaCheck(comm::Communicator const& world, std::vector<comm::TreeNode> const& nodes,
                 Layout const& layout, Arena const& arena, Buffers const& buffers)
        : world_(world), nodes_(nodes), layout_(layout), arena_(arena), buffers_(buffers) {}

    struct WeightHash {
        std::uint64_t value = 0; ///< rank 0's, the same on any number of ranks
        std::string
            diverged; ///< the first rank, or replica, with other weights, and in what; empty: none
    };

    /// XXH3 of the parameters, in the layout's order, and of the buffers. On a GPU they are copied
    /// to the host for it.
    ///
    /// Collective  over the world
    WeightHash hash() const;

    /// `step`: after which it is, for the message.
    ///
    /// Collective  over the world
    /// Throws      AgreedError 76 naming the rank that differs
    void require_same(std::int64_t step) const;

  private:
    std::vector<std::span<std::byte const>> weights_of(torch::Tensor const& parameters) const;
    std::vector<std::uint64_t> hashes_of_ranks() const;

    comm::Communicator const& world_;
    std::vector<comm::TreeNode> const& nodes_;
    Layout const& layout_;
    Arena const& arena_;
    Buffers const& buffers_;
};

} // namespace lockstep::train
