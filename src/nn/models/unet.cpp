#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/nn/recompute.hpp"
#include "nn/aware_layer.hpp"

#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>

#include "../models.hpp"
#include "norm.hpp"
#include "sample_layout.hpp"

namespace lockstep::nn {

namespace {

/// Two 3 × 3 convolutions, each with batch norm and ReLU.
torch::nn::Sequential double_convolution(std::int64_t from, std::int64_t to,
                                         Interface const& interface,
                                         std::shared_ptr<ReplicaLink> const& link) {
    torch::nn::Sequential block;
    for (auto const* const number : {"1", "2"}) {
        block->push_back(std::string("conv") + number,
                         convolution(torch::nn::Conv2dOptions(from, to, 3).padding(1).bias(false),
                                     interface.quantise_aware));
        block->push_back(std::string("norm") + number,
                         batch_norm(to, 2, interface.sync_batch_norm, link));
        block->push_back(std::string("relu") + number, torch::nn::ReLU());
        from = to;
    }
    return block;
}

/// U-Net (Ronneberger et al., arXiv 1505.04597), padded, so that every place of the input gets its
/// outputs; with nearest neighbours on the way up, whose backward has one order.
class UNet : public PictureModel {
  public:
    UNet(config::OwnValues const& values, Interface const& interface)
        : PictureModel(SampleLayout(values, interface, 2, true)), recompute_(interface.recompute) {
        auto const channels = values.integers("channels", 1);
        auto const halvings = static_cast<std::int64_t>(channels.size()) - 1;
        for (auto const extent : layout().extents()) {
            if (extent % (std::int64_t{1} << halvings) != 0) {
                throw Error(ExitCode::usage,
                            {concat("model.channels = ", values.text("channels")),
                             concat("a height or width of ", extent, " cannot be halved ",
                                    amount_of(halvings, "time"), " without a remainder"),
                             layout().advice("List fewer values, or import the images in another "
                                             "size (lockstep data import images --size)")});
            }
        }
        auto from = layout().channels();
        for (std::size_t level = 0; level < channels.size(); ++level) {
            down_.push_back(register_module(
                concat("down", level + 1),
                double_convolution(from, channels[level], interface, replica_link())));
            from = channels[level];
        }
        for (auto level = channels.size() - 1; level > 0; --level) {
            up_.push_back(register_module(concat("up", level),
                                          double_convolution(channels[level] + channels[level - 1],
                                                             channels[level - 1], interface,
                                                             replica_link())));
        }
        output_ = convolution(torch::nn::Conv2dOptions(channels.front(), interface.outputs, 1),
                              interface.quantise_aware);
        register_module("output", output_.ptr());
    }

    torch::Tensor forward(Fields const& inputs) override {
        auto found = layout().arranged(inputs.only());
        std::vector<torch::Tensor> kept;
        for (std::size_t level = 0; level < down_.size(); ++level) {
            found = run(down_[level], concat("down", level + 1),
                        level == 0 ? found : torch::max_pool2d(found, 2));
            kept.push_back(found);
        }
        kept.pop_back();
        for (auto& block : up_) {
            auto const wide =
                torch::upsample_nearest2d(found, {kept.back().size(2), kept.back().size(3)});
            found = run(block, concat("up", kept.size()), torch::cat({kept.back(), wide}, 1));
            kept.pop_back();
        }
        return output_.forward(found);
    }

  private:
    /// Recomputed, what is joined across and what goes into each level is kept.
    torch::Tensor run(torch::nn::Sequential& level, std::string const& name,
                      torch::Tensor const& inputs) const {
        return recompute_ ? forward_recomputed(level, {}, random_key(), inputs)
                          : forward_kept(level, name.c_str(), *hidden_link(), inputs);
    }

    bool recompute_;
    std::vector<torch::nn::Sequential> down_;
    std::vector<torch::nn::Sequential> up_; ///< from the deepest
    torch::nn::AnyModule output_;
};

double unet_parameters(config::OwnValues const& values, Interface const& interface) {
    SampleLayout const layout(values, interface, 2, true);
    auto const channels = values.integers("channels", 1);
    auto const two = [](std::int64_t from, std::int64_t to) {
        return static_cast<double>(9 * (from + to) * to + 4 * to);
    };
    double parameters = static_cast<double>((channels.front() + 1) * interface.outputs);
    auto from = layout.channels();
    for (std::size_t level = 0; level < channels.size(); ++level) {
        parameters += two(from, channels[level]);
        if (level > 0) {
            parameters += two(channels[level] + channels[level - 1], channels[level - 1]);
        }
        from = channels[level];
    }
    return parameters;
}

} // namespace

ModelKind unet_kind() {
    return {
        "unet",
        "U-Net, with outputs for each pixel",
        {{"channels", "16, 32, 64", "channels of the levels; each level halves height and width"},
         SampleLayout::key()},
        [](config::OwnValues const& values, Interface const& interface) {
            return std::make_shared<UNet>(values, interface);
        },
        unet_parameters};
}

} // namespace lockstep::nn
