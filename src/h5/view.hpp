#pragma once

#include "h5/handle.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::h5 {

/// Whether a dataset is a view of others: virtual, in HDF5's word.
bool is_virtual(Handle const& creation);

/// Where a mapping of a view takes its elements from.
struct VirtualSource {
    std::string file; ///< for block 0 where each block has its own; the same for `dataset`
    std::string dataset;
    std::size_t which = 0; ///< mapping
};

std::vector<VirtualSource> virtual_sources(Id creation);

/// Whether a source has all elements that a mapping takes from it; HDF5 returns fill values for the
/// missing ones.
bool reaches(Id creation, std::size_t which, Handle const& source);

/// The number of elements of a view that no mapping covers; 0 where the view grows with its
/// sources.
std::int64_t unmapped(Id creation, Handle const& dataset);

} // namespace lockstep::h5
