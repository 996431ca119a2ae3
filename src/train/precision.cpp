#include "train/precision.hpp"

#include "base/number.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <ATen/autocast_mode.h>
#include <torch/cuda.h>

#include <cmath>
#include <cstdlib>

namespace lockstep::train {

namespace {

constexpr double first_scale = 65536;
constexpr double growth_factor = 2;
constexpr double backoff_factor = 0.5;
constexpr int growth_interval = 2000;

double scale_of(config::Precision const& precision) {
    if (precision.compute != "fp16") {
        return 1;
    }
    if (precision.loss_scale == "dynamic") {
        return first_scale;
    }
    auto const value = number_of<double>(precision.loss_scale);
    if (!value || !std::isfinite(*value) || *value <= 0) {
        throw Error(ExitCode::usage, {concat("precision.loss-scale = ", precision.loss_scale),
                                      "expected dynamic, or a number above 0", "Correct it"});
    }
    return *value;
}

} // namespace

Autocast::Autocast(config::Precision const& precision, torch::Device device)
    : device_(device.type()), active_(precision.compute != "fp32") {
    if (!active_) {
        return;
    }
    was_enabled_ = at::autocast::is_autocast_enabled(device_);
    type_before_ = at::autocast::get_autocast_dtype(device_);
    cached_before_ = at::autocast::is_autocast_cache_enabled();
    at::autocast::set_autocast_cache_enabled(false);
    at::autocast::set_autocast_enabled(device_, true);
    at::autocast::set_autocast_dtype(device_, precision.compute == "bf16" ? torch::kBFloat16
                                                                          : torch::kFloat16);
}

Autocast::~Autocast() {
    if (!active_) {
        return;
    }
    at::autocast::set_autocast_cache_enabled(cached_before_);
    at::autocast::set_autocast_dtype(device_, type_before_);
    at::autocast::set_autocast_enabled(device_, was_enabled_);
}

LossScale::LossScale(config::Precision const& precision)
    : skips_(precision.compute == "fp16"), dynamic_(skips_ && precision.loss_scale == "dynamic"),
      value_(scale_of(precision)) {}

void LossScale::update(bool finite) {
    skipped_ += finite ? 0 : 1;
    in_vain_ = finite ? 0 : in_vain_ + (!dynamic_ || value_ <= 1 ? 1 : 0);
    if (!dynamic_) {
        return;
    }
    auto scale = torch::full({}, value_, torch::kFloat32);
    auto tracker = torch::full({}, growth_, torch::kInt32);
    at::_amp_update_scale_(scale, tracker, torch::full({}, finite ? 0.0 : 1.0, torch::kFloat32),
                           growth_factor, backoff_factor, growth_interval);
    value_ = scale.item<float>();
    growth_ = tracker.item<std::int32_t>();
}

void LossScale::restore(double value, std::int64_t growth, std::int64_t skipped) {
    if (dynamic_) {
        value_ = value;
        growth_ = growth;
    }
    skipped_ = skipped;
}

std::string configure_precision(config::Precision const& precision, bool deterministic) {
    auto& context = at::globalContext();
    context.setAllowTF32CuBLAS(precision.tf32);
    context.setAllowTF32CuDNN(precision.tf32);
    // The benchmark picks the fastest algorithm of the day, and with it other roundings.
    context.setBenchmarkCuDNN(precision.cudnn_benchmark && !deterministic);
    context.setDeterministicCuDNN(deterministic);
    if (torch::cuda::is_available() && precision.cudnn_benchmark && deterministic) {
        return "cuDNN's benchmark mode is off, since run.deterministic = true asks for the same "
               "algorithm every time";
    }
    return {};
}

} // namespace lockstep::train
