#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lockstep::program {

/// How to pool, in LibTorch's words: a single value stands for all dimensions.
struct MaxPoolOptions {
    std::size_t dimensions = 2; ///< 1, 2 or 3
    std::vector<std::int64_t> kernel{};
    std::vector<std::int64_t> stride{}; ///< empty: that of the kernel
    std::vector<std::int64_t> padding{0};
    std::vector<std::int64_t> dilation{1};
    bool ceil_mode = false;
    bool rectified = false; ///< of the inputs' ReLU
};

/// The maxima of windows: LibTorch's max_poolNd, perhaps behind its relu, with the same bits and
/// gradients, by own kernels for contiguous float32 on the CPU. Everything else LibTorch computes,
/// also where it records or traces the calls. Own gradients have no gradients.
///
/// Shape   as LibTorch: with or without a batch, channels, then the dimensions
/// Throws  c10::Error, that of LibTorch
at::Tensor max_pool(at::Tensor const& inputs, MaxPoolOptions const& options);

/// The same with LibTorch's indices: of each maximum, where it is in its plane.
struct PooledWithIndices {
    at::Tensor outputs;
    at::Tensor indices; ///< int64, of the outputs' shape
};
PooledWithIndices max_pool_with_indices(at::Tensor const& inputs, MaxPoolOptions const& options);

} // namespace lockstep::program
