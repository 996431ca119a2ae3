#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/nn/recompute.hpp"
#include "nn/aware_layer.hpp"
#include "nn/max_pool.hpp"
#include "nn/models/names_elsewhere.hpp"

#include <torch/nn/init.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>

#include "../models.hpp"
#include "norm.hpp"
#include "sample_layout.hpp"

namespace lockstep::nn {

namespace {

/// What a depth means: blocks of each of the four stages, and how a block is made.
struct Form {
    std::vector<int> blocks;
    bool bottleneck = false;

    std::int64_t expansion() const { return bottleneck ? 4 : 1; }
};

constexpr std::int64_t first_width = 64;

Form form_of(std::int64_t depth) {
    switch (depth) {
    case 18:
        return {{2, 2, 2, 2}, false};
    case 34:
        return {{3, 4, 6, 3}, false};
    case 50:
        return {{3, 4, 6, 3}, true};
    default:
        throw Error(ExitCode::usage, {concat("model.depth = ", depth), "expected 18, 34 or 50",
                                      "Choose one of them"});
    }
}

/// Makes layers of one network.
struct Maker {
    bool sync_batch_norm;
    bool aware; ///< of its rounding to int8
    std::shared_ptr<ReplicaLink> link;

    /// Convolution without bias, then batch norm.
    void add(torch::nn::Sequential& into, std::string const& name, std::int64_t from,
             std::int64_t to, std::int64_t kernel, std::int64_t stride = 1) const {
        auto const made = convolution(torch::nn::Conv2dOptions(from, to, kernel)
                                          .stride(stride)
                                          .padding(kernel / 2)
                                          .bias(false),
                                      aware);
        torch::nn::init::kaiming_normal_(made.ptr()->named_parameters()["weight"], 0,
                                         torch::kFanOut, torch::kReLU);
        into->push_back("conv" + name, made);
        into->push_back("norm" + name, batch_norm(to, 2, sync_batch_norm, link));
    }
};

/// y = relu(f(x) + shortcut(x)).
class ResidualImpl : public torch::nn::Module {
  public:
    ResidualImpl(Maker const& make, bool bottleneck, std::int64_t from, std::int64_t width,
                 std::int64_t to, std::int64_t stride) {
        if (bottleneck) {
            make.add(path_, "1", from, width, 1);
            path_->push_back("relu1", torch::nn::ReLU());
            make.add(path_, "2", width, width, 3, stride);
            path_->push_back("relu2", torch::nn::ReLU());
            make.add(path_, "3", width, to, 1);
        } else {
            make.add(path_, "1", from, width, 3, stride);
            path_->push_back("relu1", torch::nn::ReLU());
            make.add(path_, "2", width, to, 3);
        }
        register_module("path", path_);
        if (stride != 1 || from != to) {
            make.add(shortcut_, "", from, to, 1, stride);
            register_module("shortcut", shortcut_);
        }
    }

    torch::Tensor forward(torch::Tensor const& inputs) {
        auto const kept = shortcut_->is_empty() ? inputs : shortcut_->forward(inputs);
        return torch::relu(path_->forward(inputs) + kept);
    }

  private:
    torch::nn::Sequential path_;
    torch::nn::Sequential shortcut_;
};
TORCH_MODULE(Residual);

/// Residual network (He et al., arXiv 1512.03385; the stride of a bottleneck lies in its 3 × 3
/// convolution). With a small stem for images of less than 64 pixels.
class ResNet : public PictureModel {
  public:
    ResNet(config::OwnValues const& values, Interface const& interface)
        : PictureModel(SampleLayout(values, interface, 2)), recompute_(interface.recompute) {
        auto const form = form_of(values.integer("depth", 1));
        Maker const make{interface.sync_batch_norm, interface.quantise_aware, replica_link()};
        bool const small = has_small_stem(values, layout());
        make.add(features_, "1", layout().channels(), first_width, small ? 3 : 7, small ? 1 : 2);
        features_->push_back("relu1", torch::nn::ReLU());
        if (!small) {
            features_->push_back("pool1", MaxPool(program::MaxPoolOptions{
                                              .kernel = {3}, .stride = {2}, .padding = {1}}));
        }
        auto channels = first_width;
        for (std::size_t stage = 0; stage < form.blocks.size(); ++stage) {
            auto const width = first_width << stage;
            for (int block = 0; block < form.blocks[stage]; ++block) {
                blocks_.push_back(features_->size());
                features_->push_back(concat("stage", stage + 1, "_", block + 1),
                                     Residual(make, form.bottleneck, channels, width,
                                              width * form.expansion(),
                                              stage > 0 && block == 0 ? 2 : 1));
                channels = width * form.expansion();
            }
        }
        register_module("features", features_);
        output_ = fully_connected(channels, interface.outputs, interface.quantise_aware);
        register_module("output", output_.ptr());
    }

    std::vector<WeightSource> other_names(std::string const& tensor) const override {
        return resnet_names_elsewhere(tensor);
    }

    static bool has_small_stem(config::OwnValues const& values, SampleLayout const& layout) {
        auto const stem = values.choice("stem", {"auto", "small", "large"});
        constexpr std::int64_t large_image = 64;
        return stem == "small" || (stem == "auto" && layout.extents()[0] < large_image);
    }

    torch::Tensor forward(Fields const& inputs) override {
        auto const images = layout().arranged(inputs.only());
        auto const found = recompute_ ? forward_recomputed(features_, blocks_, random_key(), images)
                                      : forward_kept(features_, "features", *hidden_link(), images);
        return output_.forward(found.mean({2, 3}));
    }

  private:
    bool recompute_;
    std::vector<std::size_t> blocks_; ///< where each begins in features_
    torch::nn::Sequential features_;
    torch::nn::AnyModule output_;
};

double resnet_parameters(config::OwnValues const& values, Interface const& interface) {
    SampleLayout const layout(values, interface, 2);
    auto const form = form_of(values.integer("depth", 1));
    auto const convolution = [](std::int64_t from, std::int64_t to, std::int64_t kernel) {
        return static_cast<double>(from * to * kernel * kernel + 2 * to); // with its norm
    };
    auto parameters =
        convolution(layout.channels(), first_width, ResNet::has_small_stem(values, layout) ? 3 : 7);
    auto channels = first_width;
    for (std::size_t stage = 0; stage < form.blocks.size(); ++stage) {
        auto const width = first_width << stage;
        auto const to = width * form.expansion();
        for (int block = 0; block < form.blocks[stage]; ++block) {
            parameters += form.bottleneck
                              ? convolution(channels, width, 1) + convolution(width, width, 3) +
                                    convolution(width, to, 1)
                              : convolution(channels, width, 3) + convolution(width, to, 3);
            if ((stage > 0 && block == 0) || channels != to) {
                parameters += convolution(channels, to, 1);
            }
            channels = to;
        }
    }
    return parameters + static_cast<double>((channels + 1) * interface.outputs);
}

} // namespace

ModelKind resnet_kind() {
    return {"resnet",
            "residual network for images",
            {{"depth", "18", "number of layers: 18, 34 or 50"},
             {"stem", "auto",
              "first layers; large: a 7 x 7 convolution and pooling; small: a 3 x 3 convolution; "
              "auto: small for images less than 64 pixels high, else large"},
             SampleLayout::key()},
            [](config::OwnValues const& values, Interface const& interface) {
                return std::make_shared<ResNet>(values, interface);
            },
            resnet_parameters};
}

} // namespace lockstep::nn
