#include "data/order.hpp"

#include "base/random.hpp"

#include <algorithm>

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

BlockPermutation::BlockPermutation(std::int64_t n, std::uint64_t key, Blocks const& blocks)
    : blocks_(blocks), whole_(n / blocks.samples), rest_(n % blocks.samples),
      rest_turn_(static_cast<std::int64_t>(mixed(key) % static_cast<std::uint64_t>(whole_ + 1))),
      key_(key), order_(std::max<std::int64_t>(whole_, 1), key) {}

/// The position that the block of this turn begins at.
std::int64_t BlockPermutation::start_of(std::int64_t turn) const {
    return turn <= rest_turn_ || rest_ == 0 ? turn * blocks_.samples
                                            : (turn - 1) * blocks_.samples + rest_;
}

std::int64_t BlockPermutation::turn_of(std::int64_t position) const {
    auto const before_rest = rest_turn_ * blocks_.samples;
    if (rest_ == 0 || position < before_rest) {
        return position / blocks_.samples;
    }
    return position < before_rest + rest_ ? rest_turn_ : (position - rest_) / blocks_.samples + 1;
}

std::int64_t BlockPermutation::operator()(std::int64_t position) const {
    auto const turns = whole_ + (rest_ > 0 ? 1 : 0);
    auto const window = turn_of(position) / blocks_.window;
    auto const begin = start_of(window * blocks_.window);
    auto const end = start_of(std::min((window + 1) * blocks_.window, turns));
    Permutation const within(end - begin, mixed(key_ ^ mixed(static_cast<std::uint64_t>(window))));
    auto const mixed_position = begin + within(position - begin);
    auto const turn = turn_of(mixed_position);
    auto const in_block = mixed_position - start_of(turn);
    if (rest_ > 0 && turn == rest_turn_) {
        return whole_ * blocks_.samples + in_block;
    }
    auto const block = order_(turn - (rest_ > 0 && turn > rest_turn_ ? 1 : 0));
    return block * blocks_.samples + in_block;
}

} // namespace lockstep::data
