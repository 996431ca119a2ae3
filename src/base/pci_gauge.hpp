#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace lockstep {

/// How busy a device is, and how much energy it has used, as the kernel's driver reports in files:
/// AMD's reports the first, and some drivers the second.
class PciGauge {
  public:
    /// `bus`: the device's address, "0000:17:00.0"; `devices`: where the kernel lists them.
    explicit PciGauge(std::string bus,
                      std::filesystem::path const& devices = "/sys/bus/pci/devices");

    std::optional<double> utilization() const; ///< per cent
    std::optional<double> joules() const;      ///< since the driver was loaded
    std::string const& bus() const noexcept { return bus_; }

  private:
    std::string bus_; ///< as the kernel writes it
    std::filesystem::path files_;
};

} // namespace lockstep
