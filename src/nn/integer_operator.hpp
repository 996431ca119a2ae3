#pragma once

#include "nn/integer_layer.hpp"

#include <torch/library.h>

namespace lockstep::nn {

/// LibTorch's dispatcher knows the operator lockstep::integer_layer while this exists: an
/// IntegerLayer as one call, which `record_calls` can note. One at a time.
class IntegerOperator {
  public:
    static constexpr char const* name = "lockstep::integer_layer";

    IntegerOperator();

    /// Computes the layer by that operator.
    static torch::Tensor call(WeightLayer const& layer, IntegerWeights const& weights,
                              torch::Tensor const& inputs);

  private:
    torch::Library library_;
};

} // namespace lockstep::nn
