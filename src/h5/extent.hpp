#pragma once

#include "h5/handle.hpp"

#include <filesystem>
#include <string>

namespace lockstep::h5 {

/// Refuses a dataset, no view, that a small file makes expensive to read: HDF5 and this program
/// read a chunk as a whole, and elements that were never written take memory and time like others.
///
/// Throws  Error 65 that names the dataset, how much that is, and what to do
void require_bounded(Handle const& dataset, Handle const& creation, std::string const& path,
                     std::filesystem::path const& holder);

} // namespace lockstep::h5
