#pragma once

#include <array>
#include <cstdint>
#include <cstring>

namespace lockstep::program {

// What is always inlined gets the instructions of the clone that it is inlined into.

inline constexpr int block_side = 8;
using FloatRow = float __attribute__((vector_size(block_side * sizeof(float))));
using FloatBlock = std::array<FloatRow, block_side>;

/// The first `rows` rows of a block, which lie `stride` values from each other.
[[gnu::always_inline]] inline void load_block(float const* from, std::int64_t stride,
                                              std::size_t rows, FloatBlock& block) {
    for (std::size_t row = 0; row < rows; ++row) {
        std::memcpy(&block[row], from, sizeof(FloatRow));
        from += stride;
    }
}

/// Makes rows of columns: pairs, then fours, then halves change places.
[[gnu::always_inline]] inline void transpose(FloatBlock& block) {
    FloatBlock pairs; // NOLINT: filled below
    for (std::size_t i = 0; i < block.size(); i += 2) {
        pairs[i] = __builtin_shufflevector(block[i], block[i + 1], 0, 8, 2, 10, 4, 12, 6, 14);
        pairs[i + 1] = __builtin_shufflevector(block[i], block[i + 1], 1, 9, 3, 11, 5, 13, 7, 15);
    }
    FloatBlock fours; // NOLINT
    for (std::size_t i = 0; i < block.size(); i += 4) {
        for (std::size_t j = i; j < i + 2; ++j) {
            fours[j] = __builtin_shufflevector(pairs[j], pairs[j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
            fours[j + 2] =
                __builtin_shufflevector(pairs[j], pairs[j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
        }
    }
    for (std::size_t i = 0; i < block.size() / 2; ++i) {
        block[i] = __builtin_shufflevector(fours[i], fours[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        block[i + 4] = __builtin_shufflevector(fours[i], fours[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
}

} // namespace lockstep::program
