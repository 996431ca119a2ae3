#pragma once

#include "lockstep/checkpoint/verify.hpp"
#include "lockstep/config/deck.hpp"
#include "lockstep/data/dataset.hpp"
#include "nn/export_graph.hpp"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::train {

/// Writes the model of a file as TorchScript for evaluation. `deck` is the one that it was trained
/// with: it names the model, and the data, which says what a sample looks like.
///
/// Throws  Error as `load_weights`, `open_workload` and `nn::export_script` do
void export_script(config::Deck const& deck, checkpoint::VerifiedFile const& file,
                   std::filesystem::path const& out);

/// A model from a file with its weights, and descriptions of its inputs.
struct SavedModel {
    std::shared_ptr<nn::Model> model;
    std::vector<nn::ExportInput> inputs;
    std::vector<std::string> class_names;
    bool quantised = false; ///< its layers are int8
};

/// Opens the model of a file, also of one that `quantise_file` wrote. `deck` is the one that the
/// model was trained with; `rows` per sample are needed where samples are ragged, and are 0
/// otherwise.
///
/// Throws  Error 64 for a model of several inputs of which some are ragged, or where rows are
///         missing or too many; as `load_weights` and `open_workload` do
SavedModel open_saved_model(config::Deck const& deck, checkpoint::VerifiedFile const& file,
                            std::int64_t rows);

/// A set of samples as the model takes them, scaled by `mean` and `std` whatever its files say.
///
/// Throws  Error 64 where it has other inputs than the model; as data::Dataset
std::unique_ptr<data::Dataset> samples_for(SavedModel const& saved, config::Data const& data,
                                           std::string const& files);

} // namespace lockstep::train
