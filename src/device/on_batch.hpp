#pragma once

#include "lockstep/base/error.hpp"
#include "lockstep/task/task.hpp"

namespace lockstep::train {

/// Rethrows the exception in flight, thrown by work on a batch: our own errors, and those of memory
/// and devices, as they are; any other exception of LibTorch as Error 64 with the batch's shapes,
/// since model, task and data set do not match.
[[noreturn]] void rethrow_of_batch(task::Tensors const& batch);

/// Runs work on a batch.
///
/// Throws  what it throws, converted as above
template <class Work>
auto on_batch(task::Tensors const& batch, Work const& work) {
    try {
        return work();
    } catch (...) {
        rethrow_of_batch(batch);
    }
}

} // namespace lockstep::train
