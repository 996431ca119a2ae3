#pragma once

#include "checkpoint/record.hpp"

#include <filesystem>
#include <map>
#include <string>

namespace lockstep::checkpoint {

/// The keys of the model, its task and its samples ("model.name", "task.kind", "data.inputs") that
/// weights without a deck note; empty where they note none. Files of earlier versions have those of
/// the model alone. `file` is named in messages.
///
/// Throws  Error 65 for a text that is none of ours
std::map<std::string, std::string> noted_keys(Record const& record,
                                              std::filesystem::path const& file);

} // namespace lockstep::checkpoint
