#pragma once

#include "lockstep/nn/model.hpp"

#include <torch/types.h>

#include <functional>
#include <vector>

namespace lockstep::train {

/// While it exists, changes gradients of a model's parameters as backward computes them.
class PoisonedGradient {
  public:
    enum class Which {
        next,        ///< that backward computes, of any parameter
        first_of_all ///< parameters, in every backward
    };
    using Change = std::function<torch::Tensor(torch::Tensor const& gradient)>;

    PoisonedGradient(nn::Model const& model, Which which, Change const& change);
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
