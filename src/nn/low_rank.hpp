#pragma once

#include "lockstep/config/deck.hpp"
#include "lockstep/nn/model.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::nn {

/// How many parameters the adapters that a deck asks for would add to its model; 0: it asks for
/// none.
///
/// Throws  Error 64 where the model has no layers for them, or for a pattern that fits none
double adapter_parameters(Model& model, config::Model const& chosen);

/// Gives a model the adapters of its deck, and freezes all that is not trained besides them. A is
/// drawn from the seed and its name as torch.nn.Linear draws its weight (Kaiming uniform, a =
/// sqrt(5)), and B is 0: the model computes what it did. Without adapters in the deck, nothing
/// changes.
///
/// Throws   as `adapter_parameters`; Error 64 as `freeze_all_but`
/// Returns  the names of the frozen parameters
std::vector<std::string> adapt(Model& model, config::Model const& chosen, std::uint64_t seed);

/// What adapters are multiplied by.
inline double adapter_scale(config::Model const& chosen) {
    return chosen.lora_alpha / static_cast<double>(chosen.lora_rank);
}

} // namespace lockstep::nn
