#pragma once

#include "program/max_pool.hpp"

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <array>
#include <cstdint>
#include <utility>

namespace lockstep::nn {

/// `program::max_pool`; on accelerators, volumes whose windows do not overlap are pooled by
/// planes, since the backward of LibTorch's pool over three dimensions adds in no fixed order
/// there.
torch::Tensor pooled(torch::Tensor const& inputs, program::MaxPoolOptions const& options);

/// The maxima of windows that do not overlap, with the same gradients as at once: over height and
/// width first, then over depth.
///
/// Shape  [n, channels, depth, height, width]
torch::Tensor pooled_by_planes(torch::Tensor const& volumes,
                               std::array<std::int64_t, 3> const& kernel);

/// A layer of max pooling.
class MaxPoolImpl : public torch::nn::Module {
  public:
    explicit MaxPoolImpl(program::MaxPoolOptions options) : options_(std::move(options)) {}
    torch::Tensor forward(torch::Tensor const& inputs) { return pooled(inputs, options_); }
    /// The pool of the inputs' ReLU.
    torch::Tensor forward_rectified(torch::Tensor const& inputs) {
        auto options = options_;
        options.rectified = true;
        return pooled(inputs, options);
    }

  private:
    program::MaxPoolOptions options_;
};
TORCH_MODULE(MaxPool);

} // namespace lockstep::nn
