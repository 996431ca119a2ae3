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

/// Extents of one block's output.
using Extents = std::vector<std::int64_t>;

/// What the keys say, the same for the model and for the count of its parameters.
struct Cnn3dPlan {
    Cnn3dPlan(config::OwnValues const& values, Interface const& interface)
        : layout(values, interface, 3), channels(values.integers("channels", 1)),
          time_strides(values.integers("time-strides", 1)),
          pooling(values.choice("downsample", {"stride", "pool"}) == "pool"),
          leaky(values.choice("activation", {"relu", "leaky-relu"}) == "leaky-relu"),
          flatten(values.choice("head", {"average", "flatten"}) == "flatten"),
          hidden(values.integer("hidden", 0)), bound(values.number("bound", 0, 1e6)),
          outputs(interface.outputs) {
        auto extents = layout.extents();
        for (std::size_t block = 0; block < channels.size(); ++block) {
            auto const in_time = time_stride(block);
            for (std::size_t i = 0; i < extents.size(); ++i) {
                auto const stride = i == 0 ? in_time : 2;
                extents[i] = pooling ? extents[i] / stride : (extents[i] + stride - 1) / stride;
            }
            if (extents[0] * extents[1] * extents[2] == 0) {
                throw Error(ExitCode::usage,
                            {concat("model.channels = ", values.text("channels")),
                             concat("samples of ", joined_extents(), " are too small for ",
                                    amount_of(channels.size(), "block")),
                             layout.advice("List fewer values")});
            }
        }
        places = extents[0] * extents[1] * extents[2];
    }

    /// The stride of a block along the first extent; the last in the deck holds for all after it.
    std::int64_t time_stride(std::size_t block) const {
        return time_strides[std::min(block, time_strides.size() - 1)];
    }

    std::int64_t features() const { return channels.back() * (flatten ? places : 1); }

    SampleLayout layout;
    std::vector<std::int64_t> channels;
    std::vector<std::int64_t> time_strides;
    bool pooling;
    bool leaky;
    bool flatten;
    std::int64_t hidden;
    double bound;
    std::int64_t outputs;
    std::int64_t places = 0; ///< of the last block's output

  private:
    std::string joined_extents() const {
        std::vector<std::string> texts;
        for (auto const extent : layout.extents()) {
            texts.push_back(std::to_string(extent));
        }
        return joined(texts, " x ");
    }
};

/// Blocks of 3 × 3 × 3 convolution, batch norm and an activation, each of which halves height and
/// width, then average pooling and fully connected layers. For clips [channels, frames, height,
/// width] (as in C3D: Tran et al., arXiv 1412.0767) and for boxes of three dimensions.
class Cnn3d : public PictureModel {
  public:
    Cnn3d(config::OwnValues const& values, Interface const& interface)
        : PictureModel(SampleLayout(values, interface, 3)), plan_(values, interface),
          recompute_(interface.recompute) {
        bool const aware = interface.quantise_aware;
        auto const dropout = values.number("dropout", 0, 0.999);
        auto channels = plan_.layout.channels();
        for (std::size_t block = 0; block < plan_.channels.size(); ++block) {
            auto const number = std::to_string(block + 1);
            auto const wider = plan_.channels[block];
            torch::ExpandingArray<3> const halving({plan_.time_stride(block), 2, 2});
            blocks_.push_back(features_->size());
            features_->push_back(
                "conv" + number,
                convolution(torch::nn::Conv3dOptions(channels, wider, 3)
                                .padding(1)
                                .bias(false) // batch norm has one
                                .stride(plan_.pooling ? torch::ExpandingArray<3>(1) : halving),
                            aware));
            features_->push_back("norm" + number,
                                 batch_norm(wider, 3, interface.sync_batch_norm, replica_link()));
            push_activation(features_, "relu" + number);
            if (plan_.pooling) {
                features_->push_back(
                    "pool" + number,
                    MaxPool(program::MaxPoolOptions{.dimensions = 3,
                                                    .kernel = {plan_.time_stride(block), 2, 2}}));
            }
            channels = wider;
        }
        auto width = plan_.features();
        if (plan_.hidden > 0) {
            head_->push_back("hidden", fully_connected(width, plan_.hidden, aware));
            push_activation(head_, "relu");
            width = plan_.hidden;
        }
        if (dropout > 0) {
            head_->push_back("dropout", Dropout(dropout, 1, random_key()));
        }
        head_->push_back("output", fully_connected(width, plan_.outputs, aware));
        register_module("features", features_);
        register_module("head", head_);
    }

    torch::Tensor forward(Fields const& inputs) override {
        auto const clips = plan_.layout.arranged(inputs.only());
        auto const found = recompute_ ? forward_recomputed(features_, blocks_, random_key(), clips)
                                      : forward_kept(features_, "features", *hidden_link(), clips);
        auto const given = head_->forward(plan_.flatten ? found.flatten(1) : found.mean({2, 3, 4}));
        return plan_.bound > 0 ? given.tanh() * plan_.bound : given;
    }

  private:
    void push_activation(torch::nn::Sequential& into, std::string name) const {
        if (plan_.leaky) {
            into->push_back(std::move(name), torch::nn::LeakyReLU());
        } else {
            into->push_back(std::move(name), torch::nn::ReLU());
        }
    }

    Cnn3dPlan plan_;
    bool recompute_;
    std::vector<std::size_t> blocks_; ///< where each begins in features_
    torch::nn::Sequential features_;
    torch::nn::Sequential head_;
};

double cnn3d_parameters(config::OwnValues const& values, Interface const& interface) {
    Cnn3dPlan const plan(values, interface);
    double parameters = 0;
    auto channels = static_cast<double>(plan.layout.channels());
    for (auto const wider : plan.channels) {
        parameters += (27 * channels + 2) * static_cast<double>(wider);
        channels = static_cast<double>(wider);
    }
    auto width = static_cast<double>(plan.features());
    if (plan.hidden > 0) {
        parameters += (width + 1) * static_cast<double>(plan.hidden);
        width = static_cast<double>(plan.hidden);
    }
    return parameters + (width + 1) * static_cast<double>(plan.outputs);
}

} // namespace

ModelKind cnn3d_kind() {
    return {
        "cnn3d",
        "three-dimensional convolutions over video clips or volumes, with batch norm, followed by "
        "fully connected layers",
        {{"channels", "12, 24, 48", "channels of the blocks; each block halves height and width"},
         {"time-strides", "1, 2",
          "strides of the blocks along frames or depth; the last stride is repeated for further "
          "blocks"},
         {"downsample", "stride",
          "how blocks reduce the resolution: stride (the convolution has strides) or pool "
          "(max-pooling after the convolution)"},
         {"activation", "relu", "activation function: relu or leaky-relu"},
         {"head", "average",
          "input of the fully connected layers: average (the mean over all positions) or flatten "
          "(all positions)"},
         {"hidden", "0", "width of a hidden fully connected layer; 0: no hidden layer"},
         {"bound", "0",
          "bound of the outputs, which are tanh times this bound; 0: unbounded outputs"},
         {"dropout", "0", "dropout probability before the output layer"},
         SampleLayout::key()},
        [](config::OwnValues const& values, Interface const& interface) {
            return std::make_shared<Cnn3d>(values, interface);
        },
        cnn3d_parameters};
}

} // namespace lockstep::nn
