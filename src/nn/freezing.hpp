#pragma once

#include "base/name_patterns.hpp"
#include "lockstep/nn/model.hpp"

#include <string>
#include <vector>

namespace lockstep::nn {

/// Freezes the parameters whose names fit `patterns`, as NamePatterns has them: they get no
/// gradient. Layers whose parameters are all frozen, or that have none and whose buffers fit, keep
/// their buffers, such as the running statistics of batch norms: they are in evaluation mode.
///
/// Throws   Error 64 for a pattern that fits no parameter and no buffer, when nothing is left to
///          train, or when a file's layer would change its buffers all the same
/// Returns  the names of the parameters, but for those that were frozen before
std::vector<std::string> freeze(Model& model, std::string const& patterns);

/// Freezes all parameters but those of adapters and those whose names fit `trained`; as `freeze` in
/// all else, but layers without parameters train. `told` is the deck's key and value, for messages.
std::vector<std::string> freeze_all_but(Model& model, NamePatterns const& trained,
                                        std::string const& told);

/// Lets these parameters train, and all layers.
void thaw(Model& model, std::vector<std::string> const& parameters);

} // namespace lockstep::nn
