#pragma once

#include "lockstep/h5/file.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::data {

/// What a data set file holds.
struct DataInfo {
    std::filesystem::path path;
    std::uint64_t bytes = 0;
    bool ours = false; ///< written by our importers
    bool checksums = false;
    std::int64_t samples = 0;
    h5::Shape sample_shape;
    h5::Type input_type = h5::Type::u8;
    std::vector<std::string> class_names;
    std::vector<std::int64_t> class_counts;
    std::vector<double> mean;
    std::vector<double> std;
};

/// Throws  Error 66 or 65
DataInfo describe(std::filesystem::path const& path);

/// A block whose bytes are not those that were written.
struct DataDamage {
    std::string dataset; ///< or "what is not samples": names, shapes, attributes, checksums
    std::uint64_t first_byte = 0; ///< in the file
    std::uint64_t last_byte = 0;
};

/// Recomputes all checksums; none returned: every bit of the file is as it was imported.
///
/// Throws  Error 66; 65 when the file cannot be opened or has no checksums
std::vector<DataDamage> verify(std::filesystem::path const& path);

} // namespace lockstep::data
