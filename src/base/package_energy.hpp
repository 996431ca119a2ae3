#pragma once

#include <filesystem>
#include <optional>
#include <vector>

namespace lockstep {

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
