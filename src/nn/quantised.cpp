#include "nn/quantised.hpp"

namespace lockstep::nn {

Quantised::Quantised(std::shared_ptr<Model> model, std::unique_ptr<LayerGraph> graph,
                     std::vector<IntegerWeights> const& weights)
    : model_(std::move(model)), graph_(std::move(graph)) {
    for (std::size_t i = 0; i < graph_->layers(); ++i) {
        layers_.emplace_back(graph_->layer(i), weights.at(i));
    }
}

torch::Tensor Quantised::forward(Fields const& inputs) {
    return graph_->run(inputs.only(), [this](std::size_t layer, torch::Tensor const& values) {
        return std::optional(layers_[layer].forward(values));
    });
}

} // namespace lockstep::nn
