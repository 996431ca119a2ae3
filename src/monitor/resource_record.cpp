#include "lockstep/monitor/run_records.hpp"

#include <cmath>

namespace lockstep::monitor {

double ResourceRecord::joules() const {
    double const known =
        (processor_joules > 0 ? processor_joules : 0) + (device_joules > 0 ? device_joules : 0);
    return processor_joules >= 0 || device_joules >= 0 ? known : unknown;
}

void ResourceRecord::add(ResourceRecord const& more) {
    auto const add_known = [](double& into, double value) {
        into = std::isfinite(into) && std::isfinite(value) ? into + value
               : std::isfinite(value)                      ? value
                                                           : into;
    };
    seconds += more.seconds;
    processor_s += more.processor_s;
    disk_read_bytes += more.disk_read_bytes;
    disk_written_bytes += more.disk_written_bytes;
    exchanged_bytes += more.exchanged_bytes;
    network_bytes += more.network_bytes;
    add_known(processor_joules, more.processor_joules);
    add_known(device_joules, more.device_joules);
}

} // namespace lockstep::monitor
