#pragma once

#include "base/driver_library.hpp"

#include <optional>
#include <string>

namespace lockstep {

/// The NVIDIA driver's monitoring library (NVML), where it exists. It counts all GPUs of the host,
/// whatever this process may use.
class Nvml {
  public:
    /// One of its GPUs; null: none.
    using Device = void*;

    Nvml();
    ~Nvml();
    Nvml(Nvml const&) = delete;
    Nvml& operator=(Nvml const&) = delete;

    explicit operator bool() const noexcept { return ready_; }

    std::string driver_version() const; ///< empty: not known

    Device at(unsigned int index) const;
    Device with_uuid(std::string const& uuid) const;
    Device on_bus(std::string const& address) const; ///< "0000:17:00.0"
    /// The GPU that this process computes on, where the driver sees our process id and it is the
    /// only one.
    Device ours() const;

    bool linked(Device one, Device other) const; ///< by NVLink
    /// The nearest thing that two have in common: 10 a PCIe switch, … 50 the host.
    std::optional<int> common_ancestor(Device one, Device other) const;

    /// Per cent of the last sampling period in which something ran on it.
    std::optional<double> utilization(Device device) const;
    /// Energy that it has used since its driver was loaded.
    std::optional<double> joules(Device device) const;
    std::string uuid(Device device) const; ///< empty: not known

  private:
    bool computes_here(Device device) const;

    DriverLibrary library_;
    bool ready_;
};

} // namespace lockstep
