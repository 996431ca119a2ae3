#pragma once

#include <ATen/core/Tensor.h>

namespace lockstep::program {

/// Whether own kernels may compute with this tensor in place of LibTorch's: it is contiguous
/// float32 on the CPU, and LibTorch does no more with calls on this thread than to compute them; it
/// neither records, traces nor batches them, nor converts their types. Each own kernel announces its
/// call by RECORD_FUNCTION with the tensors that it reads, as LibTorch does of its operators:
/// parameters among them may still be on their way to this rank.
bool may_compute(at::Tensor const& inputs);

} // namespace lockstep::program
