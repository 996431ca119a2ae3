#pragma once

#include "base/nvml.hpp"
#include "base/pci_gauge.hpp"

#include <memory>
#include <optional>
#include <string>

namespace lockstep {

/// How busy a GPU is, as the NVIDIA driver's library (NVML) tells, which is loaded where it is
/// there; of others what the kernel's driver tells, found by the address that the vendor's driver
/// has for them.
class DeviceGauge {
  public:
    /// `device`: "cuda:N" or "hip:N" as this process counts; anything else has no gauge.
    void look_at(std::string const& device);

    /// Per cent of the last moments in which something ran on the device, whoever started it;
    /// nothing where it is not known.
    std::optional<double> utilization() const;
    /// Energy that the device has taken since its driver was loaded, for whomever.
    std::optional<double> joules() const;
    /// Tells the device from all others; empty: not known.
    std::string uuid() const;

  private:
    std::unique_ptr<Nvml> nvml_;
    Nvml::Device device_ = nullptr;
    std::optional<PciGauge> pci_; ///< of another vendor
};

} // namespace lockstep
