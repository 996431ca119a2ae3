#include "nn/advised_model.hpp"

#include "base/text.hpp"
#include "h5/element_type.hpp"

namespace lockstep::nn {

std::string advised_model(std::size_t dimensions, bool ragged, bool whole) {
    auto const* const models = whole             ? dimensions == 1 ? "transformer" : ""
                               : ragged          ? dimensions == 1   ? "cnn1d"
                                                   : dimensions == 2 ? "cnn1d or transformer"
                                                                     : ""
                               : dimensions < 2  ? "mlp"
                               : dimensions < 4  ? "cnn, resnet, vit or mlp"
                               : dimensions == 4 ? "cnn3d or mlp"
                                                 : "mlp";
    return *models != '\0'
               ? concat("Choose another model, such as ", models)
               : std::string("Export a model from PyTorch that takes such samples (model.name = "
                             "export), or name other datasets in data.inputs");
}

std::string advised_model_of_places(std::size_t dimensions) {
    auto const* const model = dimensions == 2 || dimensions == 3 ? "unet"
                              : dimensions == 4                  ? "unet3d"
                                                                 : "";
    return *model != '\0' ? concat("Choose another model, such as ", model)
                          : std::string("No built-in model gives outputs for each position of such "
                                        "samples. Export one from PyTorch (model.name = export)");
}

std::string text_of(std::vector<data::FieldInfo> const& inputs) {
    if (inputs.empty()) {
        return "what the samples hold is not known";
    }
    auto const& first = inputs.front();
    return inputs.size() > 1 ? concat("data.inputs names ", inputs.size(), " datasets")
                             : concat("dataset ", first.name, " holds ",
                                      first.whole ? "whole numbers" : "real values", " of shape ",
                                      h5::shape_text(first.shape),
                                      first.ragged ? " for each row of a sample" : "");
}

std::string advised_model(std::vector<data::FieldInfo> const& inputs) {
    return inputs.size() != 1
               ? advised_model(0, true, false)
               : advised_model(inputs.front().shape.size() + (inputs.front().ragged ? 1 : 0),
                               inputs.front().ragged, inputs.front().whole);
}

} // namespace lockstep::nn
