#include "lockstep/train/histograms.hpp"

namespace lockstep::train {

namespace {
constexpr std::int64_t bins = 40;
}

std::vector<Histogram> histograms(torch::nn::Module const& model) {
    torch::NoGradGuard const no_grad;
    std::vector<Histogram> all;
    for (auto const& item : model.named_parameters()) {
        // On GPUs there is no deterministic histogram.
        auto const values = item.value().detach().to(torch::kCPU, torch::kFloat32).reshape(-1);
        if (values.numel() == 0 || !values.isfinite().all().item<bool>()) {
            continue;
        }
        Histogram histogram{.name = item.key(),
                            .minimum = values.min().item<double>(),
                            .maximum = values.max().item<double>(),
                            .sum = values.sum(torch::kFloat64).item<double>(),
                            .sum_of_squares = values.square().sum(torch::kFloat64).item<double>(),
                            .counts = std::vector<double>(bins)};
        auto const counts =
            values.histc(bins, histogram.minimum, histogram.maximum).to(torch::kFloat64);
        std::copy_n(counts.data_ptr<double>(), bins, histogram.counts.begin());
        all.push_back(std::move(histogram));
    }
    return all;
}

} // namespace lockstep::train
