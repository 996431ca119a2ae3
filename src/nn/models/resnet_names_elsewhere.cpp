#include "base/number.hpp"
#include "base/text.hpp"
#include "nn/models/names_elsewhere.hpp"

#include <cstdint>
#include <optional>
#include <string_view>
#include <tuple>

namespace lockstep::nn {

namespace {

struct Names {
    std::string torchvision; ///< and timm
    std::string transformers;
};

/// A layer of a residual block: "path.conv2", "shortcut.norm".
std::optional<Names> names_in_block(std::string_view layer) {
    if (layer == "shortcut.conv") {
        return Names{"downsample.0", "shortcut.convolution"};
    }
    if (layer == "shortcut.norm") {
        return Names{"downsample.1", "shortcut.normalization"};
    }
    for (auto const& [ours, theirs, transformers] :
         {std::tuple{std::string_view("path.conv"), "conv", "convolution"},
          std::tuple{std::string_view("path.norm"), "bn", "normalization"}}) {
        if (auto const number =
                layer.starts_with(ours)
                    ? number_of<std::int64_t>(std::string(layer.substr(ours.size())))
                    : std::nullopt) {
            return Names{concat(theirs, *number), concat("layer.", *number - 1, ".", transformers)};
        }
    }
    return std::nullopt;
}

/// A layer of the network: "features.stage1_2.path.conv1", "output".
std::optional<Names> names_of_layer(std::string const& layer) {
    if (layer == "features.conv1") {
        return Names{"conv1", "resnet.embedder.embedder.convolution"};
    }
    if (layer == "features.norm1") {
        return Names{"bn1", "resnet.embedder.embedder.normalization"};
    }
    if (layer == "output") {
        return Names{"fc", "classifier.1"};
    }
    constexpr std::string_view stage = "features.stage";
    auto const dot = layer.find('.', stage.size());
    if (!layer.starts_with(stage) || dot == std::string::npos) {
        return std::nullopt;
    }
    auto const numbers = split(layer.substr(stage.size(), dot - stage.size()), '_');
    auto const in_block = names_in_block(std::string_view(layer).substr(dot + 1));
    if (numbers.size() != 2 || !in_block) {
        return std::nullopt;
    }
    auto const of_stage = number_of<std::int64_t>(numbers[0]).value_or(1);
    auto const of_block = number_of<std::int64_t>(numbers[1]).value_or(1);
    return Names{concat("layer", of_stage, ".", of_block - 1, ".", in_block->torchvision),
                 concat("resnet.encoder.stages.", of_stage - 1, ".layers.", of_block - 1, ".",
                        in_block->transformers)};
}

} // namespace

std::vector<WeightSource> resnet_names_elsewhere(std::string const& tensor) {
    auto const dot = tensor.rfind('.');
    if (dot == std::string::npos) {
        return {};
    }
    auto const names = names_of_layer(tensor.substr(0, dot));
    auto const kind = tensor.substr(dot); // ".weight", ".running_mean", …
    return names ? std::vector<WeightSource>{{concat(names->torchvision, kind)},
                                             {concat(names->transformers, kind)}}
                 : std::vector<WeightSource>{};
}

} // namespace lockstep::nn
