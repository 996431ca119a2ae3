#pragma once

#include <cmath>
#include <cstdint>

namespace lockstep::train {

/// The number of float32 elements in `megabytes` megabytes.
inline std::int64_t bucket_elements(double megabytes) {
    return std::llround(megabytes * 1e6 / sizeof(float));
}

} // namespace lockstep::train
