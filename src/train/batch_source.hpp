#pragma once

#include "lockstep/task/task.hpp"

namespace lockstep::train {

/// Where the replicas of a rank get their batches from.
class BatchSource {
  public:
    virtual ~BatchSource() = default;
    /// For each replica of the rank in order, its micro-batches in order; on the device that
    /// computes. May be empty.
    virtual task::Tensors next() = 0;
};

} // namespace lockstep::train
