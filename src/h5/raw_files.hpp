#pragma once

#include "h5/handle.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::h5 {

/// A file of raw values, and the first of them that belong to a dataset.
struct RawFile {
    std::filesystem::path path;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0; ///< its largest size; the last one has no limit
};

/// The raw files that a dataset of `holder` keeps its bytes in; usually none.
std::vector<RawFile> raw_files(Id creation, std::filesystem::path const& holder);

/// Throws  Error 66 for a missing file of raw values; 65 for one that is too short
void require_raw_files(std::vector<RawFile> const& files, std::uint64_t bytes,
                       std::string const& path);

} // namespace lockstep::h5
