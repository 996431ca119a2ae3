#pragma once

#include "h5/file.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::data {

/// The weights of a file's samples.
///
/// Throws  Error 65 when dataset `name` is missing, does not hold one number per sample, or one
///         that is negative or not finite
std::vector<double> read_weights(h5::File const& file, std::string const& name,
                                 std::int64_t samples);

/// Throws  Error 65 when all weights, of all files from `path` on, are 0
void require_some_weight(std::vector<double> const& weights, std::string const& name,
                         std::filesystem::path const& path);

} // namespace lockstep::data
