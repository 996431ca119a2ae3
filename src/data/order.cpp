#include "lockstep/data/order.hpp"

#include "lockstep/base/random.hpp"

namespace lockstep::data {

namespace {
constexpr std::uint64_t rounds = 4;
}

Permutation::Permutation(std::int64_t n, std::uint64_t key)
    : n_(static_cast<std::uint64_t>(n)), key_(key), half_bits_(1) {
    while ((std::uint64_t{1} << (2 * half_bits_)) < n_) {
        ++half_bits_;
    }
}

std::int64_t Permutation::operator()(std::int64_t position) const {
    std::uint64_t const mask = (std::uint64_t{1} << half_bits_) - 1;
    auto value = static_cast<std::uint64_t>(position);
    do {
        std::uint64_t left = value >> half_bits_;
        std::uint64_t right = value & mask;
        for (std::uint64_t round = 0; round < rounds; ++round) {
            std::uint64_t const next = left ^ (mixed(key_ ^ mixed(right + (round << 48))) & mask);
            left = right;
            right = next;
        }
        value = (left << half_bits_) | right;
    } while (value >= n_); // the domain is less than four times n
    return static_cast<std::int64_t>(value);
}

} // namespace lockstep::data
