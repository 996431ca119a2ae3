#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/nn/dropout.hpp"
#include "lockstep/nn/recompute.hpp"
#include "nn/aware_layer.hpp"
#include "nn/max_pool.hpp"

#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>

#include "../models.hpp"
#include "norm.hpp"
#include "sample_layout.hpp"

namespace lockstep::nn {

namespace {

/// Blocks of 3 × 3 convolution, batch norm, ReLU and 2 × 2 max-pooling, then two fully connected
/// layers.
class Cnn : public PictureModel {
  public:
    Cnn(config::OwnValues const& values, Interface const& interface)
        : PictureModel(SampleLayout(values, interface, 2)), recompute_(interface.recompute) {
        bool const aware = interface.quantise_aware;
        bool const normalise = values.boolean("batch-norm");
        auto const dropout = values.number("dropout", 0, 0.999);
        auto channels = layout().channels();
        auto height = layout().extents()[0];
        auto width = layout().extents()[1];
        int block = 0;
        for (auto const wider : values.integers("channels", 1)) {
            auto const number = std::to_string(++block);
            blocks_.push_back(features_->size());
            features_->push_back(
                "conv" + number,
                convolution(torch::nn::Conv2dOptions(channels, wider, 3).padding(1), aware));
            if (normalise) {
                features_->push_back(
                    "norm" + number,
                    batch_norm(wider, 2, interface.sync_batch_norm, replica_link()));
            }
            features_->push_back("relu" + number, torch::nn::ReLU());
            features_->push_back("pool" + number, MaxPool(program::MaxPoolOptions{.kernel = {2}}));
            channels = wider;
            height /= 2;
            width /= 2;
        }
        if (height == 0 || width == 0) {
            throw Error(ExitCode::usage,
                        {concat("model.channels = ", values.text("channels")),
                         concat("images of ", layout().extents()[0], " x ", layout().extents()[1],
                                " are too small to be halved once for each value"),
                         layout().advice("List fewer values")});
        }
        auto const hidden = values.integer("hidden", 1);
        classifier_->push_back("hidden", fully_connected(channels * height * width, hidden, aware));
        classifier_->push_back("relu", torch::nn::ReLU());
        if (dropout > 0) {
            classifier_->push_back("dropout", Dropout(dropout, 1, random_key()));
        }
        classifier_->push_back("output", fully_connected(hidden, interface.outputs, aware));
        register_module("features", features_);
        register_module("classifier", classifier_);
    }

    torch::Tensor forward(Fields const& inputs) override {
        auto const images = layout().arranged(inputs.only());
        auto const found = recompute_ ? forward_recomputed(features_, blocks_, random_key(), images)
                                      : forward_kept(features_, "features", *hidden_link(), images);
        return forward_kept(classifier_, "classifier", *hidden_link(), found.flatten(1));
    }

  private:
    bool recompute_;
    std::vector<std::size_t> blocks_; ///< where each begins in features_
    torch::nn::Sequential features_;
    torch::nn::Sequential classifier_;
};

double cnn_parameters(config::OwnValues const& values, Interface const& interface) {
    SampleLayout const layout(values, interface, 2);
    double const of_norm = values.boolean("batch-norm") ? 2 : 0;
    auto channels = static_cast<double>(layout.channels());
    auto height = layout.extents()[0];
    auto width = layout.extents()[1];
    double parameters = 0;
    for (auto const next : values.integers("channels", 1)) {
        parameters += (9 * channels + 1 + of_norm) * static_cast<double>(next);
        channels = static_cast<double>(next);
        height /= 2;
        width /= 2;
    }
    auto const hidden = static_cast<double>(values.integer("hidden", 1));
    return parameters + (channels * static_cast<double>(height * width) + 1) * hidden +
           (hidden + 1) * static_cast<double>(interface.outputs);
}

} // namespace

ModelKind cnn_kind() {
    return {"cnn",
            "blocks of convolution, batch norm, ReLU and pooling, followed by two fully connected "
            "layers",
            {{"channels", "16, 32", "channels of the blocks; each block halves height and width"},
             {"hidden", "64", "width of the hidden fully connected layer"},
             {"batch-norm", "true", "apply batch norm after each convolution"},
             {"dropout", "0", "dropout probability for the activations of the hidden layer"},
             SampleLayout::key()},
            [](config::OwnValues const& values, Interface const& interface) {
                return std::make_shared<Cnn>(values, interface);
            },
            cnn_parameters};
}

} // namespace lockstep::nn
