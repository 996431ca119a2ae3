#pragma once

#include "checkpoint/weights.hpp"
#include "lockstep/config/deck.hpp"

#include <filesystem>
#include <optional>
#include <string>

namespace lockstep::app {

/// The deck in a file; nothing where there is none, or one of another version that has keys which
/// are not known here.
std::optional<config::Deck> deck_in(checkpoint::Record const& record);

/// Writes weights as a safetensors file of `type` ("bf16") that says which model they are of.
///
/// Throws  as checkpoint::write_safetensors
void export_weights(std::filesystem::path const& out, checkpoint::Weights const& weights,
                    std::string const& type);

} // namespace lockstep::app
