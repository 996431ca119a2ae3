#pragma once

#include "base/nvml.hpp"
#include "base/pci_gauge.hpp"

#include <memory>
#include <optional>
#include <string>

namespace lockstep {

/// How busy a GPU is, as reported by the NVIDIA driver's library (NVML), which is loaded where it
/// exists; for other vendors' GPUs, as reported by the kernel's driver, which finds them by the PCI
/// address that the vendor's driver knows.
class DeviceGauge {
  public:
    /// `device`: "cuda:N" or "hip:N" as this process counts; anything else has no gauge.
    void look_at(std::string const& device);

    /// Per cent of the last moments in which something ran on the device, whoever started it;
    /// nothing where it is not known.
    std::optional<double> utilization() const;
    /// Energy that the device has used since its driver was loaded, for all its users.
    std::optional<double> joules() const;
    /// Identifies the device among all others; empty: not known.
    std::string uuid() const;

  private:
    std::unique_ptr<Nvml> nvml_;
    Nvml::Device device_ = nullptr;
    std::optional<PciGauge> pci_; ///< for GPUs of other vendors
};

} // namespace lockstep
