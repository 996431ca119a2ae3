#pragma once

#include "checkpoint/reader.hpp"
#include "checkpoint/snapshot.hpp"
#include "comm/replica_tree.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace lockstep::train {

/// State that every replica has of its own, besides parameters and buffers: what a task keeps from
/// step to step. In a checkpoint it is one array over all replicas, so that it can be read on any
/// number of ranks.
struct ReplicaArray {
    std::string name; ///< of the array: state/replicas/NAME
    h5::Type type = h5::Type::f32;
    std::uint64_t elements = 0;                   ///< of one replica, the same of all
    std::vector<std::span<std::byte>> replicas{}; ///< of this rank, in order
};

/// Adds arrays and this rank's parts of them to a snapshot, which borrows their memory.
void add_replica_arrays(checkpoint::Snapshot& snapshot, std::vector<ReplicaArray> const& arrays,
                        comm::TreeNode own, std::int64_t replicas);

/// Fills this rank's parts from a checkpoint.
///
/// Throws  Error 65 when it was written with another number of replicas, or by another task
void restore_replica_arrays(checkpoint::Reader const& reader,
                            std::vector<ReplicaArray> const& arrays, comm::TreeNode own,
                            std::int64_t replicas);

} // namespace lockstep::train
