#pragma once

#include <string>
#include <string_view>

namespace lockstep {

/// The adapter of a linear layer (LoRA: Hu et al., arXiv 2106.09685): beside "layer.weight"
/// [outputs, inputs], a product of two matrices that is added to it, scale * B * A. A [rank,
/// inputs] has the first of these names in the layer, B [outputs, rank] the second.
inline constexpr std::string_view adapter_a = "lora_a";
inline constexpr std::string_view adapter_b = "lora_b";

/// Whether "layer.lora_a" is a part of an adapter; `dot` stands between the parts of names.
bool is_of_adapter(std::string_view name, char dot = '.');
/// The name of a part of the adapter of "layer.weight"; empty for another name.
std::string adapter_name(std::string_view weight, std::string_view part);

} // namespace lockstep
