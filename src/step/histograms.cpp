#include "step/histograms.hpp"

#include "arena/parallel_parts.hpp"
#include "comm/collectives.hpp"

#include <algorithm>
#include <limits>

namespace lockstep::train {

namespace {

constexpr std::int64_t bins = 40;

/// On GPUs there is no deterministic histogram.
torch::Tensor on_host(torch::Tensor const& values) {
    return values.detach().to(torch::kCPU, torch::kFloat32).reshape(-1);
}

/// Counts in equal shares of [least, most].
torch::Tensor counted(torch::Tensor const& values, double min, double max) {
    return values.histc(bins, min, max).to(torch::kFloat64);
}

/// This rank's part of an entry; may be empty.
torch::Tensor part_of(ParameterRange const& entry, GradientSums const& sums) {
    std::vector<torch::Tensor> parts{torch::empty({0}, torch::kFloat32)};
    for (auto const& range : sums.owned) {
        auto const first = std::max(range.first, entry.first);
        auto const last = std::min(range.last, entry.first + entry.count);
        if (first < last) {
            parts.push_back(on_host(sums.values.slice(0, first, last)));
        }
    }
    return torch::cat(parts).div_(sums.divisor);
}

} // namespace

std::vector<Histogram> histograms(torch::nn::Module const& model) {
    torch::NoGradGuard const no_grad;
    std::vector<Histogram> all;
    for (auto const& item : model.named_parameters()) {
        auto const values = on_host(item.value());
        if (values.numel() == 0 || !values.isfinite().all().item<bool>()) {
            continue;
        }
        Histogram histogram{.name = item.key(),
                            .minimum = values.min().item<double>(),
                            .maximum = values.max().item<double>(),
                            .sum = values.sum(torch::kFloat64).item<double>(),
                            .sum_of_squares = values.square().sum(torch::kFloat64).item<double>(),
                            .counts = std::vector<double>(bins)};
        auto const counts = counted(values, histogram.minimum, histogram.maximum);
        std::copy_n(counts.data_ptr<double>(), bins, histogram.counts.begin());
        all.push_back(std::move(histogram));
    }
    return all;
}

std::vector<Histogram> gradient_histograms(comm::Communicator const& world,
                                           GradientSums const& sums) {
    torch::NoGradGuard const no_grad;
    constexpr auto infinity = std::numeric_limits<double>::infinity();
    std::vector<Histogram> all;
    std::vector<torch::Tensor> parts;
    std::vector<double> min;
    std::vector<double> max;
    for (auto const& entry : sums.layout.entries) {
        if (entry.trained) {
            all.push_back({.name = entry.name, .counts = std::vector<double>(bins)});
            parts.push_back(part_of(entry, sums));
            bool const empty = parts.back().numel() == 0;
            min.push_back(empty ? infinity : parts.back().min().item<double>());
            max.push_back(empty ? -infinity : parts.back().max().item<double>());
        }
    }
    comm::all_reduce(world, std::span(min), comm::Reduce::minimum);
    comm::all_reduce(world, std::span(max), comm::Reduce::maximum);
    constexpr std::int64_t row = bins + 2; // counts, the sum, the sum of squares
    auto const rows = torch::zeros({static_cast<std::int64_t>(all.size()), row}, torch::kFloat64);
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (auto const& values = parts[i]; values.numel() > 0) {
            auto const own = rows[static_cast<std::int64_t>(i)];
            own.slice(0, 0, bins).copy_(counted(values, min[i], max[i]));
            own[bins] = values.sum(torch::kFloat64);
            own[bins + 1] = values.square().sum(torch::kFloat64);
        }
    }
    std::span const flat(rows.data_ptr<double>(), static_cast<std::size_t>(rows.numel()));
    comm::all_reduce(world, flat, comm::Reduce::sum);
    for (std::size_t i = 0; i < all.size(); ++i) {
        auto const* const own = flat.data() + i * row;
        all[i].minimum = min[i];
        all[i].maximum = max[i];
        std::copy_n(own, bins, all[i].counts.begin());
        all[i].sum = own[bins];
        all[i].sum_of_squares = own[bins + 1];
    }
    return all;
}

} // namespace lockstep::train
