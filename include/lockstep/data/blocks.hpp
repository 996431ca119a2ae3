#pragma once

#include <cstdint>

namespace lockstep::data {

/// Blocks of samples that are best read together, and how many of them are mixed.
struct Blocks {
    std::int64_t samples = 1; ///< in a block; the last of the data set may have fewer
    std::int64_t window = 1;  ///< blocks whose samples are mixed
};

} // namespace lockstep::data
