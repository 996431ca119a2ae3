#pragma once

#include <ATen/core/Tensor.h>

namespace lockstep::program {

/// The same values with the last two dimensions exchanged: of contiguous float32 on the CPU copied
/// by blocks, for operators that need them contiguous; of everything else LibTorch's transpose.
///
/// Shape  [n, a, b]; returned [n, b, a]
at::Tensor transposed(at::Tensor const& values);

} // namespace lockstep::program
