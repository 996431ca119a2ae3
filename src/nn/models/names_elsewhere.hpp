#pragma once

#include "lockstep/nn/model.hpp"

#include <string>
#include <vector>

namespace lockstep::nn {

/// The names that GPT-2, Llama and ViT of the `transformers` package have for a parameter of our
/// transformers.
std::vector<WeightSource> names_elsewhere(std::string const& parameter);

} // namespace lockstep::nn
