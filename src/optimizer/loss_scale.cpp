#include "optimizer/loss_scale.hpp"

#include "base/number.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <torch/types.h>

#include <cmath>

namespace lockstep::train {

namespace {

constexpr double first_scale = 65536;
constexpr double growth_factor = 2;
constexpr double backoff_factor = 0.5;
constexpr int growth_interval = 2000;

double initial_scale(config::Precision const& precision) {
    if (precision.compute != "fp16") {
        return 1;
    }
    if (precision.loss_scale == "dynamic") {
        return first_scale;
    }
    auto const value = number_of<double>(precision.loss_scale);
    if (!value || !std::isfinite(*value) || *value <= 0) {
        throw Error(ExitCode::usage,
                    {concat("precision.loss-scale = ", precision.loss_scale),
                     "expected dynamic, or a number above 0", "Correct the value"});
    }
    return *value;
}

} // namespace

LossScale::LossScale(config::Precision const& precision)
    : skips_(precision.compute == "fp16"), dynamic_(skips_ && precision.loss_scale == "dynamic"),
      value_(initial_scale(precision)) {}

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

} // namespace lockstep::train
