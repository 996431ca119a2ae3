#pragma once

#include "h5/file.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::h5 {

/// Reads offsets into a dataset of `rows` rows: the first row of each ragged sample, and the end.
/// They are checked, and can be used as indices.
///
/// Throws  Error 65 unless they ascend from 0 to `rows`
[[nodiscard]] std::vector<std::int64_t> read_offsets(File const& file, std::string const& path,
                                                     std::uint64_t rows);

} // namespace lockstep::h5
