#pragma once

#include "lockstep/base/error.hpp"
#include "lockstep/task/task.hpp"

namespace lockstep::train {

/// The exception in flight, thrown by work on a batch: errors of ours, of memory and of devices as
/// they are; anything else that LibTorch says as Error 64 with the batch's shapes, since a model, a
/// task and a data set met that do not fit.
[[noreturn]] void rethrow_of_batch(task::Tensors const& batch);

/// Runs work on a batch.
///
/// Throws  what it throws, told as above
template <class Work>
auto on_batch(task::Tensors const& batch, Work const& work) {
    try {
        return work();
    } catch (...) {
        rethrow_of_batch(batch);
    }
}

} // namespace lockstep::train
