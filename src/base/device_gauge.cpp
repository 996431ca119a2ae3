#include "base/device_gauge.hpp"

#include "base/environment.hpp"
#include "base/gpus.hpp"
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
    device_ = nullptr;
    pci_.reset();
    auto const* const vendor = vendor_of(device);
    auto const digits = device.find(':') + 1; // 0: none
    auto const n = vendor != nullptr && digits > 0 ? number_of<unsigned int>(device.substr(digits))
                                                   : std::nullopt;
    if (!n) {
        return;
    }
    if (vendor != &vendors().front()) { // which is NVIDIA
        auto const listing = list_gpus(*vendor);
        if (*n < listing.gpus.size()) {
            pci_.emplace(listing.gpus[*n].bus);
        }
        return;
    }
    nvml_ = std::make_unique<Nvml>();
    device_ = nvml_->ours();
    device_ = device_ == nullptr ? visible(*nvml_, *n) : device_;
}

std::optional<double> DeviceGauge::joules() const {
    return pci_ ? pci_->joules() : nvml_ ? nvml_->joules(device_) : std::nullopt;
}

std::string DeviceGauge::uuid() const {
    return pci_ ? pci_->bus() : nvml_ ? nvml_->uuid(device_) : std::string();
}

std::optional<double> DeviceGauge::utilization() const {
    return pci_ ? pci_->utilization() : nvml_ ? nvml_->utilization(device_) : std::nullopt;
}

} // namespace lockstep
