#pragma once

#include <filesystem>
#include <vector>

namespace lockstep::import {

/// The existing data set files that an import to this path would replace or be next to: OUT and its
/// shards, or in a directory those of train, validation and test.
std::vector<std::filesystem::path> outputs_at(std::filesystem::path const& out);

/// Throws  Error 73 when such a file exists, or when OUT is not a directory though there are
///         several sets, or is one though there is only one set
void require_place(std::filesystem::path const& out, bool several_sets, bool may_replace);

} // namespace lockstep::import
