#pragma once

#include "base/clock.hpp"
#include "base/device_gauge.hpp"
#include "base/package_energy.hpp"
#include "base/usage.hpp"
#include "comm/topology.hpp"
#include "lockstep/comm/communicator.hpp"
#include "lockstep/events/events.hpp"

#include <array>
#include <cstddef>
#include <vector>

#include "attempt_totals.hpp"

namespace lockstep::train {

/// What all ranks of an attempt use: processors, memory, disks, network, devices, energy. The
/// kernel counts; its counters are read once per epoch, a device's load and energy at logged steps.
class ResourceTracker {
  public:
    /// When the attempt began, and what its process had used for other runs by then.
    struct Since {
        Stopwatch watch;
        Usage used{};
    };

    /// Collective  over `world`
    ResourceTracker(comm::Communicator const& world, comm::Topology const& topology,
                    AttemptTotals const& totals, Since const& since);

    /// Samples how busy the device is, and the energy counters. Not collective.
    void sample();

    /// What was used since the last call, or since the attempt's start.
    ///
    /// Collective  over the world
    Resources since_last();
    /// What was used by the attempt so far: processor time and bytes since its processes started,
    /// or since they finished earlier runs; energy and network since this object was made.
    ///
    /// Collective  over the world
    Resources in_all();

  private:
    /// The values of one rank, in the order in which ranks exchange them.
    enum Value : std::size_t {
        user,
        system,
        memory,
        read,
        written,
        exchanged,
        network,
        package_joules,
        has_package_joules,
        device_joules,
        has_device_joules,
        busy_sum,
        busy_samples,
        values
    };
    using Values = std::array<double, values>;

    Values counters();
    Resources gathered(Values const& own, double seconds) const;

    comm::Communicator const& world_;
    AttemptTotals const& totals_;
    int hosts_;
    bool speaks_for_host_;   ///< the first of the ranks of a host
    bool speaks_for_device_; ///< the first of those that share a device
    PackageEnergy package_;
    DeviceGauge gauge_;
    Usage before_; ///< used by this process for other runs
    double network_at_start_ = 0;
    double device_joules_at_start_ = 0;
    double busy_sum_ = 0; ///< per cent, over samples
    double busy_samples_ = 0;
    Stopwatch since_energy_; ///< was looked at
    Stopwatch since_start_;
    Stopwatch since_last_;
    Values last_{};
};

} // namespace lockstep::train
