#pragma once

#include "h5/file.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::h5 {

/// "${ORIGIN}" at the beginning stands for the directory of the file that names another.
std::filesystem::path expanded(std::string const& directory, std::filesystem::path const& holder);

/// The paths at which HDF5 looks, in this order, for a file that `holder` names; `variable` holds
/// more directories.
std::vector<std::filesystem::path> places_of(std::filesystem::path const& name,
                                             std::filesystem::path const& holder,
                                             char const* variable);

/// The first of the places that has an HDF5 file.
///
/// Throws  Error 66 that says what was looked for, and by whom; the error of opening where none of
///         the files that exist is HDF5
File open_first(std::vector<std::filesystem::path> const& places, std::string const& what,
                std::filesystem::path const& name);

} // namespace lockstep::h5
