#include "lockstep/train/reduction.hpp"

#include "lockstep/train/layout.hpp"

#include <algorithm>
#include <array>

namespace lockstep::train {

namespace {

/// The sum of squares of one grain: eight lanes, so that the compiler can use vector units, added
/// in a fixed order.
double grain_squares(float const* values) {
    constexpr std::size_t lanes = 8;
    std::array<double, lanes> sums{};
    for (std::int64_t i = 0; i < grain; i += lanes) {
        for (std::size_t lane = 0; lane < lanes; ++lane) {
            double const value = values[i + static_cast<std::int64_t>(lane)];
            sums[lane] += value * value;
        }
    }
    return ((sums[0] + sums[4]) + (sums[1] + sums[5])) +
           ((sums[2] + sums[6]) + (sums[3] + sums[7]));
}

} // namespace

OrderedReduction::OrderedReduction(Carrier& carrier, std::vector<comm::TreeNode> nodes,
                                   std::vector<std::int64_t> bounds, int rank)
    : carrier_(carrier), nodes_(std::move(nodes)), bounds_(std::move(bounds)),
      rank_(static_cast<std::size_t>(rank)) {}

torch::Tensor OrderedReduction::reduce(torch::Tensor const& partial) {
    if (nodes_.size() == 1) {
        return partial;
    }
    torch::NoGradGuard const no_grad;
    auto const parts = carrier_.scatter_slices(partial, bounds_);
    auto const rank_of = [this](int replica) {
        auto const node = std::find_if(nodes_.begin(), nodes_.end(),
                                       [replica](comm::TreeNode n) { return n.first == replica; });
        return node - nodes_.begin();
    };
    auto const is_a_rank = [this](comm::TreeNode node) {
        return std::find(nodes_.begin(), nodes_.end(), node) != nodes_.end();
    };
    int const replicas = nodes_.back().first + nodes_.back().count;
    comm::sum_in_tree_order({0, replicas}, is_a_rank, [&](int into, int from) {
        parts[rank_of(into)].add_(parts[rank_of(from)]);
    });
    return parts[0];
}

void OrderedReduction::share(torch::Tensor const& parameters) {
    if (nodes_.size() > 1) {
        carrier_.gather_slices(parameters, bounds_);
    }
}

std::vector<double> squares_by_grain(torch::Tensor const& slice) {
    auto const count = slice.numel() / grain;
    std::vector<double> sums(static_cast<std::size_t>(count));
    if (slice.is_cuda()) {
        auto const on_host = slice.view({count, grain}).to(torch::kFloat64).square().sum(1).cpu();
        std::copy_n(on_host.const_data_ptr<double>(), count, sums.begin());
        return sums;
    }
    auto const* const values = slice.const_data_ptr<float>();
    for (std::int64_t i = 0; i < count; ++i) {
        sums[static_cast<std::size_t>(i)] = grain_squares(values + i * grain);
    }
    return sums;
}

} // namespace lockstep::train
