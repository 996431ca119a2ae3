#pragma once

#include "lockstep/comm/communicator.hpp"
#include "lockstep/config/deck.hpp"
#include "lockstep/events/events.hpp"

#include <cstdint>
#include <filesystem>

namespace lockstep::train {

/// What else evaluate_file is asked for.
struct EvaluateFileOptions {
    std::filesystem::path outputs{}; ///< file for what the model returns; empty: none
    bool force = false;
    std::int64_t worst = 0; ///< how many of the samples with the largest losses are told
    bool pictures = false;  ///< of these samples, which must be pictures then
};

/// Measures the deck's test set, or its validation set where there is none, with the model of a
/// checkpoint or of a best.h5; exact on any number of ranks. With `outputs`, measures the training
/// set instead, all of it and as it is stored, and writes what the model returns for its samples to
/// this file, for distill.outputs; until then the outputs are in memory, each rank's share in its
/// own.
///
/// Collective  over `world`; same deck, files and options on all ranks
/// Throws      AgreedError: 66, 65 or 74 for the file or the data, 65 for samples that do not fit
///             the model's training data, unless `force`; 64 when the deck has neither set or
///             another model or task than the file, or a plug-in or library of operators whose
///             contents are not those that the file's model was trained with, unless `force`; 69
///             for a device that is not here; with `outputs` also 64 for a task, or for samples,
///             whose outputs cannot be learnt from a file, 65 for an output that is not finite, 73
///             or 74 when the file cannot be written; with `worst` also 64 for a task whose samples
///             have no losses of their own, or for samples that are no pictures but should be
Measured evaluate_file(comm::Communicator const& world, config::Deck const& deck,
                       std::filesystem::path const& file, EvaluateFileOptions const& told = {});

} // namespace lockstep::train
