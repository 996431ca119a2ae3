#pragma once

#include <cmath>
#include <cstdint>

namespace lockstep::train {

/// Elements of so many megabytes of float32.
inline std::int64_t bucket_elements(double megabytes) {
    return std::llround(megabytes * 1e6 / sizeof(float));
}

} // namespace lockstep::train
