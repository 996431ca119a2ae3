#pragma once

#include "batches/workload.hpp"
#include "lockstep/checkpoint/verify.hpp"
#include "lockstep/config/deck.hpp"
#include "lockstep/data/dataset.hpp"
#include "lower/export_graph.hpp"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::train {

/// The task and the model of a file, without its weights, and what its samples are: as the file
/// says or, where it does not, as the files of data.train do. `deck` is the one that the model was
/// trained with; where it names another data.train than the file's own deck, the remarks tell what
/// else that is.
///
/// Throws  Error 65 where that data.train does not fit the model; as `open_workload`
Workload open_model_of(config::Deck const& deck, checkpoint::VerifiedFile const& file);

/// The same, with data.train opened to be read as the model takes it.
///
/// Throws  Error 65 where data.train does not fit the model; as `open_workload`
Workload open_by_data(config::Deck deck, checkpoint::VerifiedFile const& file);

/// Writes the model of a file as TorchScript for evaluation. `deck` is the one that it was trained
/// with.
///
/// Throws  Error as `load_weights`, `open_model_of` and `nn::export_script` do
/// Returns  remarks for the user
std::vector<std::string> export_script(config::Deck const& deck,
                                       checkpoint::VerifiedFile const& file,
                                       std::filesystem::path const& out);

/// A model from a file with its weights, and descriptions of its inputs.
struct SavedModel {
    std::shared_ptr<nn::Model> model;
    std::vector<lower::ExportInput> inputs;
    std::vector<std::string> class_names;
    data::Facts facts;                ///< what it knows of its samples
    std::vector<std::string> remarks; ///< for the user
    bool quantised = false;           ///< its layers are int8
};

/// Opens the model of a file, also of one that `quantise_file` wrote. `deck` is the one that the
/// model was trained with; `rows` per sample are needed where samples are ragged, and are 0
/// otherwise.
///
/// Throws  Error 64 for a model of several inputs of which some are ragged, or where rows are
///         missing or too many; as `load_weights` and `open_model_of` do
SavedModel open_saved_model(config::Deck const& deck, checkpoint::VerifiedFile const& file,
                            std::int64_t rows);

/// A set of samples as the model takes them, scaled by its mean and std whatever the files say; a
/// line for the user where those say otherwise is added to `remarks`.
///
/// Throws  Error 64 where its samples are others than the model's; as data::Dataset
std::unique_ptr<data::Dataset> samples_for(SavedModel const& saved, config::Data const& data,
                                           std::string const& files,
                                           std::vector<std::string>& remarks);

} // namespace lockstep::train
