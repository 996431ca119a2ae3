#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/nn/recompute.hpp"
#include "nn/aware_layer.hpp"
#include "program/widened.hpp"

#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>

#include "../models.hpp"
#include "halving.hpp"
#include "norm.hpp"
#include "sample_layout.hpp"

namespace lockstep::nn {

namespace {

/// Two convolutions of side 3, each with batch norm and ReLU.
template <std::size_t dimensions>
torch::nn::Sequential double_convolution(std::int64_t from, std::int64_t to,
                                         Interface const& interface,
                                         std::shared_ptr<ReplicaLink> const& link) {
    torch::nn::Sequential block;
    for (auto const* const number : {"1", "2"}) {
        block->push_back(
            std::string("conv") + number,
            convolution(torch::nn::ConvOptions<dimensions>(from, to, 3).padding(1).bias(false),
                        interface.quantise_aware));
        block->push_back(std::string("norm") + number,
                         batch_norm(to, dimensions, interface.sync_batch_norm, link));
        block->push_back(std::string("relu") + number, torch::nn::ReLU());
        from = to;
    }
    return block;
}

/// U-Net (Ronneberger et al., arXiv 1505.04597; of volumes Çiçek et al., arXiv 1606.06650), padded,
/// so that every place of the input gets its outputs; with nearest neighbours on the way up, whose
/// backward has one order.
template <std::size_t dimensions>
class UNet : public PictureModel {
  public:
    UNet(config::OwnValues const& values, Interface const& interface)
        : PictureModel(SampleLayout(values, interface, dimensions, true)),
          recompute_(interface.recompute) {
        auto const channels = values.integers("channels", 1);
        require_halvings(values, static_cast<std::int64_t>(channels.size()) - 1);
        auto from = layout().channels();
        for (std::size_t level = 0; level < channels.size(); ++level) {
            down_.push_back(register_module(
                concat("down", level + 1),
                double_convolution<dimensions>(from, channels[level], interface, replica_link())));
            from = channels[level];
        }
        for (auto level = channels.size() - 1; level > 0; --level) {
            up_.push_back(register_module(
                concat("up", level),
                double_convolution<dimensions>(channels[level] + channels[level - 1],
                                               channels[level - 1], interface, replica_link())));
        }
        output_ =
            convolution(torch::nn::ConvOptions<dimensions>(channels.front(), interface.outputs, 1),
                        interface.quantise_aware);
        register_module("output", output_.ptr());
    }

    torch::Tensor forward(Fields const& inputs) override {
        auto found = layout().arranged(inputs.only());
        std::vector<torch::Tensor> kept;
        for (std::size_t level = 0; level < down_.size(); ++level) {
            found =
                run(down_[level], concat("down", level + 1), level == 0 ? found : halved(found));
            kept.push_back(found);
        }
        kept.pop_back();
        for (auto& block : up_) {
            auto const wide = program::widened(found, kept.back().sizes().slice(2));
            found = run(block, concat("up", kept.size()), torch::cat({kept.back(), wide}, 1));
            kept.pop_back();
        }
        return output_.forward(found);
    }

  private:
    void require_halvings(config::OwnValues const& values, std::int64_t halvings) const {
        constexpr bool pictures = dimensions == 2;
        for (auto const extent : layout().extents()) {
            if (extent % (std::int64_t{1} << halvings) != 0) {
                throw Error(
                    ExitCode::usage,
                    {concat("model.channels = ", values.text("channels")),
                     concat("a ", pictures ? "" : "depth, ", "height or width of ", extent,
                            " cannot be halved ", amount_of(halvings, "time"),
                            " without a remainder"),
                     layout().advice(
                         pictures ? "List fewer values, or import the images in another size "
                                    "(lockstep data import images --size)"
                                  : "List fewer values, or store volumes that are padded to "
                                    "another size (numpy.pad), their masks with a label that "
                                    "task.ignore-label names")});
            }
        }
    }

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

template <std::size_t dimensions>
double unet_parameters(config::OwnValues const& values, Interface const& interface) {
    SampleLayout const layout(values, interface, dimensions, true);
    auto const channels = values.integers("channels", 1);
    auto const two = [](std::int64_t from, std::int64_t to) {
        constexpr double window = dimensions == 2 ? 9 : 27;
        auto const wider = static_cast<double>(to);
        return window * (static_cast<double>(from) + wider) * wider + 4 * wider;
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

template <std::size_t dimensions>
ModelKind kind_of(std::string name, std::string meaning, std::string halved_extents) {
    return {std::move(name),
            std::move(meaning),
            {{"channels", "16, 32, 64",
              concat("channels of the levels; each level halves ", halved_extents)},
             SampleLayout::key()},
            [](config::OwnValues const& values, Interface const& interface) {
                return std::make_shared<UNet<dimensions>>(values, interface);
            },
            unet_parameters<dimensions>};
}

} // namespace

ModelKind unet_kind() {
    return kind_of<2>("unet", "U-Net, with outputs for each pixel", "height and width");
}

ModelKind unet3d_kind() {
    return kind_of<3>("unet3d", "three-dimensional U-Net, with outputs for each voxel of a volume",
                      "depth, height and width");
}

} // namespace lockstep::nn
