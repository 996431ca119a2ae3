#pragma once

#include "lockstep/data/blocks.hpp"

#include <cstdint>

namespace lockstep::data {

/// A keyed permutation of [0, n) that needs no memory: a balanced Feistel network of four rounds
/// over the next even power of two, walked until it lands inside (Black, Rogaway, "Ciphers with
/// arbitrary finite domains", CT-RSA 2002).
class Permutation {
  public:
    /// `n` is at least 1.
    Permutation(std::int64_t n, std::uint64_t key);

    /// The element at `position`, both in [0, n).
    std::int64_t operator()(std::int64_t position) const;

  private:
    std::uint64_t n_;
    std::uint64_t key_;
    int half_bits_;
};

/// A keyed permutation of [0, n) for storage that is read by blocks: the blocks are permuted, and
/// then the samples of each window of blocks. As `Permutation`, it needs no memory.
class BlockPermutation {
  public:
    /// `n` is at least 1, as are the numbers of `blocks`.
    BlockPermutation(std::int64_t n, std::uint64_t key, Blocks const& blocks);

    std::int64_t operator()(std::int64_t position) const;

  private:
    std::int64_t start_of(std::int64_t turn) const;
    std::int64_t turn_of(std::int64_t position) const;

    Blocks blocks_;
    std::int64_t whole_;     ///< whole blocks
    std::int64_t rest_;      ///< samples after them, which make one more block
    std::int64_t rest_turn_; ///< whole blocks before that one in the order
    std::uint64_t key_;
    Permutation order_; ///< of the whole blocks
};

} // namespace lockstep::data
