#pragma once

#include <ATen/core/Tensor.h>

namespace lockstep::program {

/// Twice the extents, each value in place of its nearest neighbours: LibTorch's upsample_nearest2d
/// or 3d with the same bits and gradients, by own kernels for contiguous float32 on the CPU.
/// Everything else, and other extents, LibTorch computes. Own gradients have no gradients.
///
/// Shape  inputs [n, channels, extents…] of two or three extents; returned [n, channels, extents]
at::Tensor widened(at::Tensor const& inputs, at::IntArrayRef extents);

} // namespace lockstep::program
