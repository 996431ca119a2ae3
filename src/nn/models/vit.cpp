#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "nn/aware_layer.hpp"
#include "nn/models/names_elsewhere.hpp"

#include <torch/nn/init.h>

#include "../models.hpp"
#include "config_elsewhere.hpp"
#include "sample_layout.hpp"
#include "transformer_block.hpp"

namespace lockstep::nn {

namespace {

/// How an image is cut into patches.
struct Patches {
    SampleLayout layout;
    std::int64_t side;
    std::int64_t count = 1;

    Patches(config::OwnValues const& values, Interface const& interface)
        : layout(values, interface, 2), side(values.integer("patch", 1)) {
        for (auto const extent : layout.extents()) {
            if (extent % side != 0) {
                throw Error(ExitCode::usage,
                            {concat("model.patch = ", side),
                             concat("images with a side of ", extent,
                                    " pixels cannot be divided into patches of that size"),
                             layout.advice("Set a number that divides height and width, or import "
                                           "the images in another size (lockstep data import "
                                           "images --size)")});
            }
            count *= extent / side;
        }
    }
};

/// Vision transformer (Dosovitskiy et al., ICLR 2021): patches of an image as a sequence after a
/// learnt token, whose values at the end are classified.
class Vit : public PictureModel {
  public:
    Vit(config::OwnValues const& values, Interface const& interface)
        : PictureModel(SampleLayout(values, interface, 2)), patches_(values, interface),
          form_(TransformerForm::of(values)) {
        form_.quantise_aware = interface.quantise_aware;
        auto const& form = form_;
        cut_ = convolution(
            torch::nn::Conv2dOptions(patches_.layout.channels(), form.width, patches_.side)
                .stride(patches_.side),
            form.quantise_aware);
        register_module("patches", cut_.ptr());
        class_ = register_parameter("class_token", torch::zeros({1, 1, form.width}));
        positions_ =
            register_parameter("positions", torch::zeros({1, patches_.count + 1, form.width}));
        draw_normal(positions_);
        dropout_ = register_module("dropout", Dropout(form.dropout, 0, random_key()));
        blocks_ = register_module(
            "blocks", TransformerBlocks(form, interface.recompute, random_key(), hidden_link()));
        output_ = fully_connected(form.width, interface.outputs, form.quantise_aware);
        register_module("output", output_.ptr());
        auto of_output = output_.ptr()->named_parameters();
        torch::nn::init::zeros_(of_output["bias"]);
        draw_normal(of_output["weight"]);
    }

    torch::Tensor forward(Fields const& inputs) override {
        auto const images = patches_.layout.arranged(inputs.only());
        auto const cut = cut_.forward(images).flatten(2).transpose(1, 2);
        auto const first = class_.to(cut.scalar_type()).expand_as(cut.narrow(1, 0, 1));
        auto const values = dropout_(torch::cat({first, cut}, 1) + positions_);
        return output_.forward(blocks_(values, Visible{}).select(1, 0));
    }

    std::vector<WeightSource> other_names(std::string const& parameter) const override {
        return names_elsewhere(parameter);
    }
    std::vector<Contradiction> contradictions(std::filesystem::path const& config) const override {
        return contradictions_with(config, form_, nullptr);
    }

  private:
    Patches patches_;
    TransformerForm form_;
    torch::nn::AnyModule cut_;
    torch::Tensor class_;
    torch::Tensor positions_;
    Dropout dropout_{nullptr};
    TransformerBlocks blocks_{nullptr};
    torch::nn::AnyModule output_;
};

double vit_parameters(config::OwnValues const& values, Interface const& interface) {
    Patches const patches(values, interface);
    auto const form = TransformerForm::of(values);
    auto const width = static_cast<double>(form.width);
    auto const patch = static_cast<double>(patches.layout.channels() * patches.side * patches.side);
    return (patch + 1) * width + width + (static_cast<double>(patches.count) + 1) * width +
           form.parameters() + (width + 1) * static_cast<double>(interface.outputs);
}

} // namespace

ModelKind vit_kind() {
    auto keys = TransformerForm::keys("layer", "gelu", "true");
    keys.insert(keys.end(), {{"patch", "4", "side of a patch, in pixels"}, SampleLayout::key()});
    return {"vit", "vision transformer, with attention over the patches of an image", keys,
            [](config::OwnValues const& values, Interface const& interface) {
                return std::make_shared<Vit>(values, interface);
            },
            vit_parameters};
}

} // namespace lockstep::nn
