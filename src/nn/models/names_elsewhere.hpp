#pragma once

#include "lockstep/nn/model.hpp"

#include <optional>
#include <string>
#include <vector>

namespace lockstep::nn {

/// The names that GPT-2, Llama and ViT of the `transformers` package, and ViT of timm and
/// torchvision, have for a parameter of our transformers.
std::vector<WeightSource> names_elsewhere(std::string const& parameter);

/// The names that ResNet of timm and torchvision, which are the same, and of the `transformers`
/// package have for a parameter or buffer of ours, in this order.
std::vector<WeightSource> resnet_names_elsewhere(std::string const& tensor);

/// Packages of PyTorch whose names weights can be exported under.
enum class Package { torchvision, timm };

/// The name of a tensor of our `model` ("resnet") in such a package; nothing where it has none.
std::optional<WeightSource> name_in(Package package, std::string const& model,
                                    std::string const& tensor);

} // namespace lockstep::nn
