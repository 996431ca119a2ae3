#pragma once

#include <torch/torch.h>

#include <utility>

namespace lockstep::train {

/// While it lives, a model's parameters hold other values; then again what they held before, bit
/// for bit.
class AveragedWeights {
  public:
    AveragedWeights() = default;
    /// Keeps a copy of `parameters`, which the caller then overwrites.
    explicit AveragedWeights(torch::Tensor parameters)
        : parameters_(std::move(parameters)), kept_(parameters_.clone()) {}
    ~AveragedWeights();
    AveragedWeights(AveragedWeights&&) noexcept = default;
    AveragedWeights& operator=(AveragedWeights&&) = delete;

  private:
    torch::Tensor parameters_;
    torch::Tensor kept_; ///< undefined: nothing to bring back
};

} // namespace lockstep::train
