#pragma once

#include "lockstep/nn/model.hpp"

#include <torch/types.h>

#include <vector>

namespace lockstep::train {

/// Makes the next gradient that backward makes of a model's parameters NaN, until it is destroyed.
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
