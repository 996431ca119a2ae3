#pragma once

#include "deploy/graph.hpp"
#include "lockstep/nn/model.hpp"

#include <string>
#include <vector>

namespace lockstep::lower {

/// An input that an exported model takes.
struct ExportInput {
    data::FieldInfo info;
    std::int64_t rows = 0;      ///< of a sample, where the data's samples are ragged
    std::vector<double> mean{}; ///< as in data::Dataset: for u8 in units of 1/255
    std::vector<double> std{};
    bool channels_last = false; ///< as in data::Facts

    /// The shape of a sample, with its rows.
    std::vector<std::int64_t> sample() const;
    /// The element type of the graph's input: u8 and whole numbers as they are stored, what float32
    /// does not hold exactly as float64, all else as float32.
    deploy::Element element() const;
};

/// What normalised outputs are multiplied by, and what is added then.
///
/// Shape  as data::Facts::target_mean; empty: outputs are not normalised
struct ExportUnits {
    std::vector<double> mean{};
    std::vector<double> std{};
};

/// The names of a graph's inputs: "inputs" of a single one, whatever its dataset is called; of
/// several, those of the datasets, with a number behind a name that is taken already.
std::vector<std::string> input_names(std::vector<ExportInput> const& inputs);

/// The graph of a model's forward in evaluation, with the scaling of its inputs inside, and that of
/// its outputs: it is run for batches of 2 and of 3 samples, and the operators that LibTorch runs
/// are recorded.
///
/// Throws  Error 64 for an operator, or a use of the batch, that exported models do not have, by
///         its name and what it followed
deploy::Graph export_graph(nn::Model& model, std::vector<ExportInput> const& inputs,
                           ExportUnits const& units = {});

} // namespace lockstep::lower
