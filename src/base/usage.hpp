#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

/// What this process, and those that it has started and awaited, have used since they began.
struct Usage {
    double user_s = 0; ///< of processors
    double system_s = 0;
    double memory_peak = 0; ///< bytes, resident; of this process
    double disk_read = 0;   ///< bytes that had to come from a disk, or go there; of this process
    double disk_written = 0;
};

/// As the kernel counts it: getrusage, /proc/self/status and /proc/self/io. What cannot be read is
/// 0.
Usage process_usage();

/// Bytes that all interfaces but the loopback have received and sent, from a text like
/// /proc/net/dev.
double network_bytes(std::string const& text);

/// The energy counters of the host's processor packages (RAPL), where they may be read: on most
/// systems only root can.
class PackageEnergy {
  public:
    explicit PackageEnergy(std::filesystem::path const& root = "/sys/class/powercap");

    /// Joules since the object was made; nothing where there are no counters. Counters wrap around:
    /// call it more often than they do, which is every hour at 70 W, every few minutes in large
    /// packages.
    std::optional<double> joules();

  private:
    struct Counter {
        std::filesystem::path file;
        double range = 0; ///< microjoules, after which it starts over
        double last = 0;
    };

    std::vector<Counter> counters_;
    double microjoules_ = 0;
};

} // namespace lockstep
