#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::data {

/// Rows of every sample of a ragged dataset `field` in the files that `files` names, from its
/// offsets: 8 bytes per sample.
///
/// Throws  Error 66 for a missing file; 65 for one without such offsets
std::vector<std::int64_t> ragged_lengths(std::string const& files, std::string const& field);

} // namespace lockstep::data
