#pragma once

#include "lockstep/nn/model.hpp"
#include "nn/integer_layer.hpp"
#include "nn/layer_graph.hpp"

#include <memory>
#include <string>
#include <vector>

namespace lockstep::nn {

/// A model for evaluation, on CPUs, whose convolutions and fully connected layers compute in int8;
/// all between them stays float32.
class Quantised : public Model {
  public:
    /// `weights`: of the layers of `graph`, in order, which is of `model` and in evaluation mode.
    ///
    /// Throws  Error 69 as IntegerLayer does
    Quantised(std::shared_ptr<Model> model, std::unique_ptr<LayerGraph> graph,
              std::vector<IntegerWeights> const& weights);

    torch::Tensor forward(Fields const& inputs) override;

  private:
    std::shared_ptr<Model> model_;
    std::unique_ptr<LayerGraph> graph_;
    std::vector<IntegerLayer> layers_;
};

} // namespace lockstep::nn
