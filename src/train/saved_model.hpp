#pragma once

#include "lockstep/checkpoint/verify.hpp"
#include "lockstep/config/deck.hpp"

#include <filesystem>

namespace lockstep::train {

/// Writes the model of a file as TorchScript for evaluation. `deck` is the one that it was trained
/// with: it names the model, and the data, which says what a sample looks like.
///
/// Throws  Error as `load_weights`, `open_workload` and `nn::export_script` do
void export_script(config::Deck const& deck, checkpoint::VerifiedFile const& file,
                   std::filesystem::path const& out);

} // namespace lockstep::train
