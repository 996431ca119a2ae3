#pragma once

#include "lockstep/data/dataset.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::data {

/// Values of a field that are not a number, or infinite.
struct NotFinite {
    std::string dataset;
    std::int64_t count = 0;
    std::int64_t samples = 0; ///< samples that hold them
    std::int64_t first = 0;   ///< first of these samples, in the file
};

/// Reads and decodes all of a file, ours or another's, and names the fields that are not finite.
///
/// Throws  Error 66 or 65 as `Dataset` does, or for a position's class that the file does not name
std::vector<NotFinite> look_through(DatasetOptions const& options);

/// Reads what all samples of a file of ours were made from, if the file says so.
///
/// Throws  Error 65 where that does not fit the samples
void look_through_sources(DatasetOptions const& options);

/// Reads all values of the mask in the files that the options name, also those that no sample has;
/// does nothing without a mask.
///
/// Throws  Error 65 for one that is neither 0 nor 1, or for a file without that dataset; 66 for a
///         missing file
void look_through_mask(DatasetOptions const& options);

} // namespace lockstep::data
