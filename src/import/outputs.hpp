#pragma once

#include <filesystem>
#include <vector>

namespace lockstep::import {

/// The data set files that an import to this place would replace or stand beside: OUT and its
/// shards, or in a directory those of train, validation and test.
std::vector<std::filesystem::path> outputs_at(std::filesystem::path const& out);

/// Throws  Error 73 when there is one, or when OUT is no directory though there are several sets,
///         or is one though there is one set
void require_place(std::filesystem::path const& out, bool several_sets, bool may_replace);

} // namespace lockstep::import
