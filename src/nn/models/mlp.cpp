#include "lockstep/nn/dropout.hpp"
#include "lockstep/nn/recompute.hpp"
#include "nn/aware_layer.hpp"

#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>

#include "../models.hpp"

namespace lockstep::nn {

namespace {

/// Fully connected layers with ReLU between them, over the flattened sample.
class Mlp : public Model {
  public:
    Mlp(config::OwnValues const& values, Interface const& interface) {
        auto const dropout = values.number("dropout", 0, 0.999);
        std::int64_t width = 1;
        for (auto const extent : interface.sample_shape) {
            width *= extent;
        }
        bool const aware = interface.quantise_aware;
        std::uint64_t layer = 0;
        recompute_ = interface.recompute;
        for (auto const hidden : values.integers("hidden", 1)) {
            auto const number = std::to_string(++layer);
            blocks_.push_back(layers_->size());
            layers_->push_back("hidden" + number, fully_connected(width, hidden, aware));
            layers_->push_back("relu" + number, torch::nn::ReLU());
            if (dropout > 0) {
                layers_->push_back("dropout" + number, Dropout(dropout, layer, random_key()));
            }
            width = hidden;
        }
        blocks_.push_back(layers_->size());
        layers_->push_back("output", fully_connected(width, interface.outputs, aware));
        register_module("layers", layers_);
    }

    torch::Tensor forward(Fields const& inputs) override {
        auto const& given = inputs.only();
        auto const flat = given.dim() > 1 ? given.flatten(1) : given.unsqueeze(1);
        return recompute_ ? forward_recomputed(layers_, blocks_, random_key(), flat)
                          : forward_kept(layers_, "layers", *hidden_link(), flat);
    }

  private:
    bool recompute_ = false;
    std::vector<std::size_t> blocks_; ///< where each begins in layers_
    torch::nn::Sequential layers_;
};

double mlp_parameters(config::OwnValues const& values, Interface const& interface) {
    double width = 1;
    for (auto const extent : interface.sample_shape) {
        width *= static_cast<double>(extent);
    }
    double parameters = 0;
    auto widths = values.integers("hidden", 1);
    widths.push_back(interface.outputs);
    for (auto const next : widths) {
        parameters += (width + 1) * static_cast<double>(next);
        width = static_cast<double>(next);
    }
    return parameters;
}

} // namespace

ModelKind mlp_kind() {
    return {"mlp",
            "fully connected layers over the flattened sample",
            {{"hidden", "256, 128", "widths of the hidden layers"},
             {"dropout", "0", "dropout probability for the activations of the hidden layers"}},
            [](config::OwnValues const& values, Interface const& interface) {
                return std::make_shared<Mlp>(values, interface);
            },
            mlp_parameters};
}

} // namespace lockstep::nn
