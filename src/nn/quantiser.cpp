#include "nn/quantiser.hpp"

#include "lockstep/base/error.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace lockstep::nn {

namespace {

constexpr std::int64_t bins = 2048;
constexpr double largest_byte = 255;
constexpr double largest_weight = 127;

torch::Tensor centres(double min, double max) {
    auto const width = (max - min) / static_cast<double>(bins);
    return (torch::arange(bins, torch::kFloat64) + 0.5) * width + min;
}

} // namespace

QuantisedWeight quantised_weight(torch::Tensor const& weight) {
    torch::NoGradGuard const no_grad;
    auto const largest = weight.detach().to(torch::kFloat32).flatten(1).abs().amax(1);
    auto const scales = largest / largest_weight;
    return quantised_weight(
        weight, torch::where(scales == 0, torch::ones_like(scales), scales)); // all are 0
}

QuantisedWeight quantised_weight(torch::Tensor const& weight, torch::Tensor const& scales) {
    torch::NoGradGuard const no_grad;
    auto const whole = weight.detach().to(torch::kFloat32).contiguous();
    std::vector<std::int64_t> shape(static_cast<std::size_t>(whole.dim()), 1);
    shape.front() = whole.size(0);
    auto const values = (whole / scales.view(shape)).round().clamp(-largest_weight, largest_weight);
    return {values.to(torch::kChar), scales};
}

torch::Tensor quantised_bias(torch::Tensor const& bias, torch::Tensor const& units) {
    torch::NoGradGuard const no_grad;
    auto const whole = (bias.to(torch::kFloat64) / units.to(torch::kFloat64)).round();
    auto const rounded = whole.to(torch::kFloat32) * units;
    return torch::where(whole.abs() < std::numeric_limits<std::int32_t>::max(), rounded, bias);
}

ByteScale byte_scale(double min, double max) {
    min = std::min(min, 0.0);
    max = std::max(max, 0.0);
    if (!(max > min)) {
        return {};
    }
    // A scale of float32, as it is kept.
    auto const scale = std::max(static_cast<double>(static_cast<float>((max - min) / largest_byte)),
                                static_cast<double>(std::numeric_limits<float>::min()));
    return {scale, std::clamp<std::int64_t>(std::llround(-min / scale), 0, 255)};
}

torch::Tensor to_bytes(torch::Tensor const& values, ByteScale const& scale) {
    return (values * (1 / scale.scale))
        .round_()
        .add_(scale.zero)
        .clamp_(0, largest_byte)
        .to(torch::kByte);
}

Calibration calibration_named(std::string const& name) {
    static std::map<std::string, Calibration> const all{{"minmax", Calibration::minmax},
                                                        {"percentile", Calibration::percentile},
                                                        {"mse", Calibration::mse}};
    return all.at(name);
}

void Observed::widen(torch::Tensor const& values) {
    if (values.numel() == 0) {
        return;
    }
    auto const [low, high] = values.aminmax();
    auto const min = low.item<double>();
    auto const max = high.item<double>();
    min_ = any_ ? std::min(min_, min) : min;
    max_ = any_ ? std::max(max_, max) : max;
    if (!std::isfinite(min) || !std::isfinite(max)) {
        min_ = std::numeric_limits<double>::quiet_NaN(); // told when a scale is asked for
    }
    any_ = true;
}

void Observed::count(torch::Tensor const& values) {
    if (!counts_.defined()) {
        counts_ = torch::zeros({bins}, torch::kFloat64);
    }
    if (max_ > min_) {
        counts_ += torch::histc(values.to(torch::kFloat64), bins, min_, max_);
    }
}

ByteScale Observed::scale(Calibration how) const {
    if (!any_ || !std::isfinite(min_) || !std::isfinite(max_)) {
        throw Error(ExitCode::data,
                    {"a layer cannot be calibrated",
                     any_ ? "the inputs of this layer contain values that are not finite"
                          : "this layer has received no inputs",
                     "Check the model and the samples of data.train"});
    }
    if (how == Calibration::minmax || !counts_.defined() || !(max_ > min_)) {
        return byte_scale(min_, max_);
    }
    return how == Calibration::percentile ? percentile() : of_min_error();
}

ByteScale Observed::percentile() const {
    constexpr double outside = 0.00005; // at each end
    auto const sums = counts_.cumsum(0) / counts_.sum();
    auto const below = sums.lt(outside).sum().item<std::int64_t>();
    auto const within = sums.lt(1 - outside).sum().item<std::int64_t>();
    auto const width = (max_ - min_) / static_cast<double>(bins);
    return byte_scale(min_ + width * static_cast<double>(below),
                      min_ + width * static_cast<double>(std::min(within + 1, bins)));
}

ByteScale Observed::of_min_error() const {
    constexpr int tries = 100;
    auto const values = centres(min_, max_);
    ByteScale best;
    double min = std::numeric_limits<double>::infinity();
    for (int i = tries; i > tries / 5; --i) {
        auto const share = static_cast<double>(i) / tries;
        auto const scale = byte_scale(min_ * share, max_ * share);
        auto const rounded =
            (to_bytes(values, scale).to(torch::kFloat64) - scale.zero) * scale.scale;
        auto const error = ((rounded - values).square() * counts_).sum().item<double>();
        if (error < min) {
            min = error;
            best = scale;
        }
    }
    return best;
}

} // namespace lockstep::nn
