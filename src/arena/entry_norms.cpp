#include "arena/entry_norms.hpp"

#include "comm/replica_tree.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace lockstep::train {

namespace {

/// Eight sums, so that the compiler can use vector units, added in a fixed order.
double squares_of_unit(float const* values) {
    constexpr std::size_t width = 8;
    std::array<double, width> sums{};
    for (std::size_t i = 0; i < arena_unit; i += width) {
        for (std::size_t slot = 0; slot < width; ++slot) {
            double const value = values[i + slot];
            sums[slot] += value * value;
        }
    }
    return ((sums[0] + sums[4]) + (sums[1] + sums[5])) +
           ((sums[2] + sums[6]) + (sums[3] + sums[7]));
}

} // namespace

torch::Tensor squares_by_halves(torch::Tensor const& values) {
    auto sums = values.view({-1, arena_unit}).to(torch::kFloat64).square_();
    for (auto half = arena_unit / 2; half > 0; half /= 2) {
        sums = sums.narrow(1, 0, half) + sums.narrow(1, half, half);
    }
    return sums.view(-1);
}

void write_unit_squares(torch::Tensor const& values, torch::Tensor const& into) {
    if (!values.is_cpu()) {
        into.copy_(squares_by_halves(values));
        return;
    }
    auto const* const from = values.const_data_ptr<float>();
    auto* const to = into.mutable_data_ptr<double>();
    for (std::int64_t i = 0; i < into.numel(); ++i) {
        to[i] = squares_of_unit(from + i * arena_unit);
    }
}

Segments::Segments(Layout const& layout) {
    first_of_.push_back(0);
    for (auto const& entry : layout.entries) {
        auto const last_block =
            (entry.first + std::max<std::int64_t>(entry.count, 1) - 1) / reduction_block;
        first_block_.push_back(entry.first / reduction_block);
        first_of_.push_back(first_of_.back() +
                            static_cast<std::size_t>(last_block - first_block_.back() + 1));
    }
}

std::size_t Segments::of(std::size_t entry, std::int64_t element) const {
    return first_of_[entry] +
           static_cast<std::size_t>(element / reduction_block - first_block_[entry]);
}

std::vector<double> Segments::norms(std::span<double const> squares) const {
    std::vector<double> norms;
    for (std::size_t entry = 0; entry + 1 < first_of_.size(); ++entry) {
        auto const begin = squares.begin() + static_cast<std::ptrdiff_t>(first_of_[entry]);
        auto const end = squares.begin() + static_cast<std::ptrdiff_t>(first_of_[entry + 1]);
        norms.push_back(std::sqrt(comm::tree_sum({begin, end})));
    }
    return norms;
}

} // namespace lockstep::train
