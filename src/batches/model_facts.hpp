#pragma once

#include "checkpoint/record.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/checkpoint/verify.hpp"
#include "lockstep/data/dataset.hpp"
#include "lockstep/rl/environment.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::train {

/// Records what a model was trained on, so that nobody need ask the files of its training set,
/// which may be gone, or others by now.
void note_facts(checkpoint::Record& record, data::Facts const& facts);

/// What is recorded: nothing in files of other programs, less in those of earlier versions.
///
/// Throws  Error 65 where `file`, which the record is of, does not say it in our form
data::Facts facts_of(checkpoint::Record const& record, std::filesystem::path const& file);
/// The same of a file of weights. Throws  as checkpoint::open_weights, too
data::Facts facts_of(checkpoint::VerifiedFile const& file);

/// The same of a program of PyTorch, for model.name = `kind`; nothing where its file does not say
/// it.
///
/// Throws  Error 65 as above, 66 for a missing file
std::optional<data::Facts> facts_of_program(std::string const& kind,
                                            std::filesystem::path const& file);

/// What a policy knows of its observations.
data::Facts facts_of(rl::Spaces const& spaces);

/// Fields whose files do not state how many tokens there are have as many as those of `known`.
void complete_vocabularies(std::vector<data::FieldInfo>& fields,
                           std::vector<data::FieldInfo> const& known);

/// How messages call the data of a model's file.
std::string data_of(std::filesystem::path const& file);

/// The error for a set, which messages call `named`, whose samples mean something else.
Error does_not_fit(std::string const& named, std::string const& whose, std::string const& why);
/// The same as a warning, where it is allowed.
std::string misfit_allowed(std::string const& named, std::string const& whose,
                           std::string const& why);

/// Normalises a set as other samples were, where that is known.
///
/// Returns  a line for the user where the set names another mean and std; empty: nothing to tell
std::string scale_as(data::Dataset& set, std::string const& named, data::Facts const& known,
                     std::string const& whose);

/// Lets a set be read as other samples were.
///
/// Throws   Error 65 where its samples mean something else
/// Returns  as `scale_as`
std::string read_as(data::Dataset& set, std::string const& named, data::Facts const& known,
                    std::string const& whose);

} // namespace lockstep::train
