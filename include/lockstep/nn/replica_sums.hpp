#pragma once

#include <span>

namespace lockstep::nn {

/// How a layer exchanges sums with other replicas in the middle of forward or backward.
class ReplicaSums {
  public:
    virtual ~ReplicaSums() = default;
    /// Replaces `values` by their sum over all replicas, in tree order: the same bits everywhere.
    ///
    /// Collective  over all replicas, at the same point of their work, with equally many values; a
    ///             replica without samples takes part, too, with zeros
    /// Throws      Error 76 when a replica does not arrive in time, or when another has failed
    virtual void sum(int replica, std::span<double> values) = 0;
};

/// The replica that a module computes now, and how it reaches the others: null where layers do
/// not communicate (communication.sync-batch-norm = false).
struct ReplicaLink {
    ReplicaSums* sums = nullptr;
    int replica = 0;
};

} // namespace lockstep::nn
