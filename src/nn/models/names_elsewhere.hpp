#pragma once

#include "lockstep/nn/model.hpp"

#include <string>
#include <vector>

namespace lockstep::nn {

/// The names that GPT-2, Llama and ViT of the `transformers` package, and ViT of timm and
/// torchvision, have for a parameter of our transformers.
std::vector<WeightSource> names_elsewhere(std::string const& parameter);

/// The names that ResNet of timm and torchvision, which are the same, and of the `transformers`
/// package have for a parameter or buffer of ours.
std::vector<WeightSource> resnet_names_elsewhere(std::string const& tensor);

} // namespace lockstep::nn
