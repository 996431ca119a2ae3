#pragma once

#include "lockstep/nn/model.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace lockstep::nn {

/// What training changes of a linear layer whose weight stays as it is: a product of two matrices
/// of low rank that is added to the weight, scale * B * A (LoRA: Hu et al., arXiv 2106.09685).
struct Adapter {
    torch::Tensor a; ///< [rank, inputs]
    torch::Tensor b; ///< [outputs, rank]
    double scale = 1;

    /// What it adds to the layer's outputs.
    ///
    /// Shape  inputs [..., inputs]; returns [..., outputs]
    torch::Tensor operator()(torch::Tensor const& inputs) const;
};

/// A linear layer of a model that can get an adapter.
struct AdapterPlace {
    std::string layer; ///< "blocks.block1.query"
    torch::Tensor weight;
    std::function<void(Adapter const&)> add; ///< its matrices are parameters of the layer from then
};

/// An interface that a model may implement, too, whose linear layers are no modules of ours.
class HasAdapterPlaces {
  public:
    virtual ~HasAdapterPlaces() = default;
    virtual std::vector<AdapterPlace> adapter_places() = 0;
};

/// Where a model can get adapters, in the order of its layers.
std::vector<AdapterPlace> adapter_places(Model& model);

} // namespace lockstep::nn
