#pragma once

#include "nn/adapter.hpp"

#include <torch/nn/modules/linear.h>

#include <optional>

namespace lockstep::nn {

/// A linear layer that may have an adapter; without one, it is torch's.
class AdaptableLinearImpl : public torch::nn::LinearImpl {
  public:
    using torch::nn::LinearImpl::LinearImpl;

    void adapt(Adapter const& adapter);
    /// Shape  [..., inputs]; returns [..., outputs]
    torch::Tensor forward(torch::Tensor const& inputs);

  private:
    std::optional<Adapter> adapter_;
};
TORCH_MODULE(AdaptableLinear);

} // namespace lockstep::nn
