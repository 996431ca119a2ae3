#pragma once

#include "lockstep/nn/model.hpp"

#include <torch/types.h>

#include <vector>

namespace lockstep::train {

/// While it exists, turns the next gradient of a model's parameters that backward computes into
/// NaN.
class PoisonedGradient {
  public:
    explicit PoisonedGradient(nn::Model const& model);
    PoisonedGradient(PoisonedGradient const&) = delete;
    PoisonedGradient& operator=(PoisonedGradient const&) = delete;
    ~PoisonedGradient();

  private:
    struct Hook {
        torch::Tensor parameter;
        unsigned number;
    };
    std::vector<Hook> hooks_;
};

} // namespace lockstep::train
