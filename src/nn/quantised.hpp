#pragma once

#include "lockstep/nn/model.hpp"
#include "nn/integer_layer.hpp"
#include "nn/layer_graph.hpp"

#include <memory>
#include <string>
#include <vector>

namespace lockstep::nn {

/// A model for evaluation, on CPUs, whose convolutions and fully connected layers compute in int8;
/// everything between them stays float32.
class Quantised : public Model {
  public:
    /// `weights`: those of the layers of `graph`, in order; `graph` is that of `model`, in
    /// evaluation mode.
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
