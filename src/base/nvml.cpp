#include "base/nvml.hpp"

#include <algorithm>
#include <array>
#include <unistd.h>
#include <vector>

namespace lockstep {

namespace {

// What nvml.h says; the ABI of its version 2 functions does not change.
constexpr int nvlink = 2;

struct NvmlUtilization {
    unsigned int gpu = 0;    ///< per cent
    unsigned int memory = 0; ///< of the time in which memory was read or written
};

struct NvmlProcess { // nvmlProcessInfo_v2_t
    unsigned int id = 0;
    unsigned long long used_memory = 0;
    unsigned int gpu_instance = 0;
    unsigned int compute_instance = 0;
};

} // namespace

Nvml::Nvml() : library_("libnvidia-ml.so.1"), ready_(library_.call("nvmlInit_v2")) {}

Nvml::~Nvml() {
    if (ready_) {
        library_.call("nvmlShutdown");
    }
}

std::string Nvml::driver_version() const {
    std::array<char, 96> version{};
    library_.call("nvmlSystemGetDriverVersion", version.data(),
                  static_cast<unsigned int>(version.size()));
    return version.data();
}

Nvml::Device Nvml::at(unsigned int index) const {
    Device device = nullptr;
    return library_.call("nvmlDeviceGetHandleByIndex_v2", index, &device) ? device : nullptr;
}

Nvml::Device Nvml::with_uuid(std::string const& uuid) const {
    Device device = nullptr;
    return library_.call("nvmlDeviceGetHandleByUUID", uuid.c_str(), &device) ? device : nullptr;
}

Nvml::Device Nvml::on_bus(std::string const& address) const {
    Device device = nullptr;
    return library_.call("nvmlDeviceGetHandleByPciBusId_v2", address.c_str(), &device) ? device
                                                                                       : nullptr;
}

bool Nvml::computes_here(Device device) const {
    std::vector<NvmlProcess> all(256);
    auto count = static_cast<unsigned int>(all.size());
    if (device == nullptr ||
        !library_.call("nvmlDeviceGetComputeRunningProcesses_v2", device, &count, all.data())) {
        return false;
    }
    return std::any_of(all.begin(), all.begin() + count, [](NvmlProcess const& process) {
        return process.id == static_cast<unsigned int>(::getpid());
    });
}

Nvml::Device Nvml::ours() const {
    unsigned int count = 0;
    library_.call("nvmlDeviceGetCount_v2", &count);
    Device found = nullptr;
    for (unsigned int index = 0; index < count; ++index) {
        auto* const device = at(index);
        if (computes_here(device)) {
            if (found != nullptr) {
                return nullptr;
            }
            found = device;
        }
    }
    return found;
}

bool Nvml::linked(Device one, Device other) const {
    int status = -1;
    return library_.call("nvmlDeviceGetP2PStatus", one, other, nvlink, &status) && status == 0;
}

std::optional<int> Nvml::common_ancestor(Device one, Device other) const {
    int level = 0;
    bool const known = library_.call("nvmlDeviceGetTopologyCommonAncestor", one, other, &level);
    return known ? std::optional(level) : std::nullopt;
}

std::optional<double> Nvml::utilization(Device device) const {
    NvmlUtilization found;
    bool const known =
        device != nullptr && library_.call("nvmlDeviceGetUtilizationRates", device, &found);
    return known ? std::optional<double>(found.gpu) : std::nullopt;
}

std::optional<double> Nvml::joules(Device device) const {
    unsigned long long millijoules = 0;
    bool const known = device != nullptr &&
                       library_.call("nvmlDeviceGetTotalEnergyConsumption", device, &millijoules);
    return known ? std::optional(1e-3 * static_cast<double>(millijoules)) : std::nullopt;
}

std::string Nvml::uuid(Device device) const {
    std::array<char, 96> text{};
    if (device != nullptr) {
        library_.call("nvmlDeviceGetUUID", device, text.data(),
                      static_cast<unsigned int>(text.size()));
    }
    text.back() = 0;
    return text.data();
}

} // namespace lockstep
