#include "host_devices.hpp"

#include "base/file.hpp"
#include "base/host_facts.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>

namespace lockstep::launch {

int HostDevices::count() const {
    return gpus.empty() ? std::max(cores / threads, 1) : static_cast<int>(gpus.size());
}

std::string HostDevices::text() const {
    return gpus.empty() ? concat(amount_of(cores, "core"), ", with ", amount_of(threads, "thread"),
                                 " per rank")
                        : amount_of(gpus.size(), "GPU");
}

HostDevices devices_here(config::Run const& run) {
    HostDevices devices;
    devices.threads = static_cast<int>(std::max<std::int64_t>(run.threads, 1));
    devices.cores = usable_cores();
    if (run.device == "cpu") {
        return devices;
    }
    if (auto const listing = list_gpus(); !listing.gpus.empty()) {
        for (int const index : chosen_gpus(run.devices, listing.gpus)) {
            devices.gpus.push_back(listing.gpus[static_cast<std::size_t>(index)]);
        }
    }
    return devices;
}

} // namespace lockstep::launch
