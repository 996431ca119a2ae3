#include "base/device_gauge.hpp"

#include "base/environment.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "base/vendors.hpp"

namespace lockstep {

namespace {

/// The n-th device that the environment leaves.
Nvml::Device visible(Nvml const& nvml, unsigned int n) {
    auto const names = split(environment_text(vendors().front().visible), ',');
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
    auto const prefix = concat(vendors().front().kind, ":"); // NVIDIA's
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

std::optional<double> DeviceGauge::joules() const {
    return nvml_ ? nvml_->joules(device_) : std::nullopt;
}

std::string DeviceGauge::uuid() const {
    return nvml_ ? nvml_->uuid(device_) : std::string();
}

std::optional<double> DeviceGauge::utilization() const {
    return nvml_ ? nvml_->utilization(device_) : std::nullopt;
}

} // namespace lockstep
