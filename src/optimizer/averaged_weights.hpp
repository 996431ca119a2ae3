#pragma once

#include <torch/types.h>

#include <functional>
#include <utility>

namespace lockstep::train {

/// While it exists, a model's parameters hold other values; then again what they held before, bit
/// for bit.
class AveragedWeights {
  public:
    AveragedWeights() = default;
    /// Keeps a copy of `parameters`, which the caller then overwrites; calls `restored` when the
    /// old values are back.
    AveragedWeights(torch::Tensor parameters, std::function<void()> restored)
        : parameters_(std::move(parameters)), kept_(parameters_.clone()),
          restored_(std::move(restored)) {}
    ~AveragedWeights();
    AveragedWeights(AveragedWeights&&) noexcept = default;
    AveragedWeights& operator=(AveragedWeights&&) = delete;

  private:
    torch::Tensor parameters_;
    torch::Tensor kept_; ///< undefined: nothing to bring back
    std::function<void()> restored_;
};

} // namespace lockstep::train
