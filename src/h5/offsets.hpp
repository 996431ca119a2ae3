#pragma once

#include "h5/file.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::h5 {

/// The first row of each of some neighbours in a dataset of `rows` rows, and the end: they can be
/// used as they are to look into it.
///
/// Throws  Error 65 unless they rise from 0 to `rows`
[[nodiscard]] std::vector<std::int64_t> read_offsets(File const& file, std::string const& path,
                                                     std::uint64_t rows);

} // namespace lockstep::h5
