#pragma once

#include "lockstep/checkpoint/verify.hpp"
#include "lockstep/config/deck.hpp"
#include "nn/export_graph.hpp"

#include <memory>

#include "deploy/graph.hpp"

namespace lockstep::train {

/// A model of a file with its weights, and what it is fed.
struct SavedModel {
    std::shared_ptr<nn::Model> model;
    nn::ExportInputs inputs;
    std::vector<std::string> class_names;
};

/// `deck` is the one that the model was trained with; `rows` of a sample are needed where samples
/// have a number of rows each, and else are 0.
///
/// Throws  Error 64 for a model of several inputs, or where rows are missing or too many; as
///         `load_weights` and `open_workload` do
SavedModel open_saved_model(config::Deck const& deck, checkpoint::VerifiedFile const& file,
                            std::int64_t rows);

/// Its inference graph, simplified, with the classes' names among its facts.
///
/// Throws  as `nn::export_graph`
deploy::Graph graph_of(SavedModel const& saved);

} // namespace lockstep::train
