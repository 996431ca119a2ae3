#pragma once

#include <ATen/core/Tensor.h>

namespace lockstep::program {

/// What a batch norm in training consists of besides its inputs; running statistics are undefined
/// where there are none.
struct BatchNormTerms {
    at::Tensor weight;
    at::Tensor bias;
    at::Tensor running_mean;
    at::Tensor running_var;
    double momentum = 0.1;
    double epsilon = 1e-5;
};

/// LibTorch's batch norm in training, with the same outputs, running statistics and gradients, bit
/// for bit; its statistics by own kernels for contiguous float32 on CPUs with AVX2, where
/// LibTorch's add one value after the other. Everything else LibTorch computes.
///
/// Shape  [n, channels, ...]
at::Tensor batch_norm(at::Tensor const& inputs, BatchNormTerms const& terms);

} // namespace lockstep::program
