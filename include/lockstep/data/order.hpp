#pragma once

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

} // namespace lockstep::data
