#pragma once

#include "program/max_pool.hpp"

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

namespace lockstep::nn {

/// A layer of max pooling, `program::max_pool`.
class MaxPoolImpl : public torch::nn::Module {
  public:
    explicit MaxPoolImpl(program::MaxPoolOptions options) : options_(std::move(options)) {}
    torch::Tensor forward(torch::Tensor const& inputs) {
        return program::max_pool(inputs, options_);
    }
    /// The pool of the inputs' ReLU.
    torch::Tensor forward_rectified(torch::Tensor const& inputs) {
        auto options = options_;
        options.rectified = true;
        return program::max_pool(inputs, options);
    }

  private:
    program::MaxPoolOptions options_;
};
TORCH_MODULE(MaxPool);

} // namespace lockstep::nn
