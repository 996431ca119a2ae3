#pragma once

#include "lockstep/task/task.hpp"

namespace lockstep::train {

/// Where the replicas of a rank get their batches from.
class BatchSource {
  public:
    virtual ~BatchSource() = default;
    /// The next batch, on the device that computes: for each replica of the rank in order, its
    /// micro-batches in order. It may be empty.
    virtual task::Tensors next() = 0;
};

} // namespace lockstep::train
