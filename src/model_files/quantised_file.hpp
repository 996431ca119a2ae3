#pragma once

#include "lockstep/checkpoint/verify.hpp"
#include "lockstep/config/deck.hpp"
#include "lockstep/nn/model.hpp"
#include "model_files/quantise_options.hpp"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::train {

/// What is said of a file that was written, for people.
struct QuantisedFile {
    std::string text;
    std::vector<std::string> remarks;
};

/// Writes the model of a file in int8: weights with a scale per output and batch norm folded in,
/// inputs of layers with a scale from samples of data.train. `deck` is the one that it was trained
/// with.
///
/// Throws   Error as `load_weights` and `open_workload` do; 64 for a model that cannot be quantised
///          65 where the file says that its model knows another number of classes than it has
QuantisedFile quantise_file(config::Deck const& deck, checkpoint::VerifiedFile const& file,
                            std::filesystem::path const& out, QuantiseOptions const& options);

/// Whether `quantise_file` wrote the file. Throws Error as `checkpoint::open_weights`
bool is_quantised(checkpoint::VerifiedFile const& file);

/// The model of such a file; `model` is the deck's, on the CPU, with any weights.
///
/// Throws  Error 65 when the file is of another model; 69 as nn::IntegerLayer
std::shared_ptr<nn::Model> open_quantised(std::shared_ptr<nn::Model> model,
                                          nn::Interface const& interface,
                                          checkpoint::VerifiedFile const& file);

} // namespace lockstep::train
