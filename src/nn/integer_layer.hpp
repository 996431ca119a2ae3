#pragma once

#include "nn/layer_graph.hpp"
#include "nn/quantiser.hpp"

#include <torch/types.h>

namespace lockstep::nn {

/// An int8 layer, as a file holds it.
struct IntegerWeights {
    QuantisedWeight weight;
    torch::Tensor bias; ///< [outputs] float32
    ByteScale inputs;
};

/// A convolution or a fully connected layer that oneDNN computes in int8: products of bytes, summed
/// in 32 bits, and scaled to float32 at the end. The sums are exact. Where the processor would add
/// pairs of products in 16 bits (x86-64 without VNNI), the inputs are split in two, at twice the
/// cost.
class IntegerLayer {
  public:
    /// `layer` says how it computes; its values are not used.
    ///
    /// Throws  Error 69 when LibTorch was built without these operators
    IntegerLayer(WeightLayer const& layer, IntegerWeights weights);

    /// Shape  as the layer's, float32
    torch::Tensor forward(torch::Tensor const& inputs) const;

  private:
    WeightLayer layer_;
    IntegerWeights weights_;
    torch::Tensor packed_; ///< the weight in oneDNN's own order
    bool saturates_ = false;
};

} // namespace lockstep::nn
