#include "monitor/device_gauge.hpp"

#include "base/environment.hpp"
#include "base/number.hpp"
#include "base/text.hpp"

namespace lockstep::monitor {

namespace {

/// The n-th device that CUDA_VISIBLE_DEVICES leaves.
Nvml::Device visible(Nvml const& nvml, unsigned int n) {
    auto const names = split(environment_text("CUDA_VISIBLE_DEVICES"), ',');
    if (names.empty()) {
        return nvml.at(n);
    }
    if (n >= names.size()) {
        return nullptr;
    }
    auto const index = number_of<unsigned int>(names[n]);
    return index ? nvml.at(*index) : nvml.with_uuid(names[n]);
}

} // namespace

void DeviceGauge::look_at(std::string const& device) {
    constexpr std::string_view prefix = "cuda:";
    auto const n = device.starts_with(prefix)
                       ? number_of<unsigned int>(device.substr(prefix.size()))
                       : std::nullopt;
    device_ = nullptr;
    if (!n) {
        return;
    }
    nvml_ = std::make_unique<Nvml>();
    device_ = nvml_->ours();
    device_ = device_ == nullptr ? visible(*nvml_, *n) : device_;
}

std::optional<double> DeviceGauge::utilization() const {
    return nvml_ ? nvml_->utilization(device_) : std::nullopt;
}

} // namespace lockstep::monitor
