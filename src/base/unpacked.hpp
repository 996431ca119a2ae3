#pragma once

#include <cstdint>

namespace lockstep {

/// What the parts of a file of `bytes` may have together when they are unpacked: some repeat
/// themselves, but a small file that would fill the memory is damaged.
constexpr std::uint64_t max_unpacked(std::uint64_t bytes) {
    return 4 * bytes + (std::uint64_t{64} << 20);
}

} // namespace lockstep
