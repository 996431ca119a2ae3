#pragma once

#include <cstdint>

namespace lockstep::data {

/// Positions [first, first + count) of an epoch's order, or samples of a file.
struct Span {
    std::int64_t first = 0;
    std::int64_t count = 0;
};

} // namespace lockstep::data
