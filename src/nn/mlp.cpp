#include "lockstep/nn/dropout.hpp"
#include "models.hpp"

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
        for (auto const hidden : values.integers("hidden", 1)) {
            layers_->push_back(torch::nn::Linear(width, hidden));
            layers_->push_back(torch::nn::ReLU());
            if (dropout > 0) {
                layers_->push_back(Dropout(dropout, layers_->size(), random_key()));
            }
            width = hidden;
        }
        layers_->push_back(torch::nn::Linear(width, interface.outputs));
        register_module("layers", layers_);
    }

    torch::Tensor forward(torch::Tensor inputs) override {
        return layers_->forward(inputs.flatten(1));
    }

  private:
    torch::nn::Sequential layers_;
};

} // namespace

ModelKind mlp_kind() {
    return {"mlp",
            "fully connected layers over the flattened sample",
            {{"hidden", "256, 128", "widths of the hidden layers"},
             {"dropout", "0", "share of activations that is dropped"}},
            [](config::OwnValues const& values, Interface const& interface) {
                return std::make_shared<Mlp>(values, interface);
            }};
}

} // namespace lockstep::nn
