#include "monitor/device_gauge.hpp"

#include "base/environment.hpp"
#include "base/number.hpp"
#include "base/text.hpp"

#include <array>
#include <dlfcn.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace lockstep::monitor {

namespace {

// The few names of nvml.h that are used here; the ABI of its version 2 functions does not change.
using Handle = void*;

struct Utilization {
    unsigned int gpu = 0;    ///< per cent
    unsigned int memory = 0; ///< of the time in which memory was read or written
};

struct Process { // nvmlProcessInfo_v2_t
    unsigned int id = 0;
    unsigned long long used_memory = 0;
    unsigned int gpu_instance = 0;
    unsigned int compute_instance = 0;
};

constexpr int success = 0;

} // namespace

struct DeviceGauge::Library {
    void* library = nullptr;
    int (*shutdown)() = nullptr;
    int (*count)(unsigned int*) = nullptr;
    int (*by_index)(unsigned int, Handle*) = nullptr;
    int (*by_uuid)(char const*, Handle*) = nullptr;
    int (*processes)(Handle, unsigned int*, Process*) = nullptr;
    int (*utilization)(Handle, Utilization*) = nullptr;

    ~Library() {
        if (shutdown != nullptr) {
            shutdown();
        }
        if (library != nullptr) {
            ::dlclose(library);
        }
    }

    template <class Function>
    bool find(char const* name, Function*& function) const {
        function = reinterpret_cast<Function*>(::dlsym(library, name));
        return function != nullptr;
    }

    static std::unique_ptr<Library> load() {
        auto found = std::make_unique<Library>();
        found->library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
        int (*init)() = nullptr;
        int (*stop)() = nullptr;
        if (found->library == nullptr || !found->find("nvmlInit_v2", init) ||
            !found->find("nvmlShutdown", stop) ||
            !found->find("nvmlDeviceGetCount_v2", found->count) ||
            !found->find("nvmlDeviceGetHandleByIndex_v2", found->by_index) ||
            !found->find("nvmlDeviceGetHandleByUUID", found->by_uuid) ||
            !found->find("nvmlDeviceGetUtilizationRates", found->utilization) ||
            init() != success) {
            return nullptr;
        }
        found->shutdown = stop;
        found->find("nvmlDeviceGetComputeRunningProcesses_v2", found->processes);
        return found;
    }

    /// The device that this process computes on, where the driver sees our process id and there is
    /// no other.
    Handle ours() const {
        unsigned int devices = 0;
        if (processes == nullptr || count(&devices) != success) {
            return nullptr;
        }
        Handle found = nullptr;
        for (unsigned int i = 0; i < devices; ++i) {
            Handle device = nullptr;
            std::vector<Process> all(256);
            auto n = static_cast<unsigned int>(all.size());
            if (by_index(i, &device) != success || processes(device, &n, all.data()) != success) {
                continue;
            }
            for (unsigned int k = 0; k < n; ++k) {
                if (all[k].id == static_cast<unsigned int>(::getpid())) {
                    if (found != nullptr && found != device) {
                        return nullptr;
                    }
                    found = device;
                }
            }
        }
        return found;
    }

    /// The n-th device that CUDA_VISIBLE_DEVICES leaves.
    Handle visible(unsigned int n) const {
        Handle device = nullptr;
        auto const names = split(environment_text("CUDA_VISIBLE_DEVICES"), ',');
        if (names.empty()) {
            return by_index(n, &device) == success ? device : nullptr;
        }
        if (n >= names.size()) {
            return nullptr;
        }
        auto const index = number_of<unsigned int>(names[n]);
        int const result = index ? by_index(*index, &device) : by_uuid(names[n].c_str(), &device);
        return result == success ? device : nullptr;
    }
};

DeviceGauge::DeviceGauge() = default;
DeviceGauge::DeviceGauge(DeviceGauge&& other) noexcept
    : library_(std::move(other.library_)), device_(std::exchange(other.device_, nullptr)) {}
DeviceGauge& DeviceGauge::operator=(DeviceGauge&& other) noexcept {
    std::swap(library_, other.library_);
    std::swap(device_, other.device_);
    return *this;
}
DeviceGauge::~DeviceGauge() = default;

void DeviceGauge::look_at(std::string const& device) {
    constexpr std::string_view prefix = "cuda:";
    auto const n = device.starts_with(prefix)
                       ? number_of<unsigned int>(device.substr(prefix.size()))
                       : std::nullopt;
    device_ = nullptr;
    if (!n) {
        return;
    }
    library_ = Library::load();
    if (library_) {
        device_ = library_->ours();
        device_ = device_ == nullptr ? library_->visible(*n) : device_;
    }
}

std::optional<double> DeviceGauge::utilization() const {
    Utilization found;
    if (device_ == nullptr || library_->utilization(device_, &found) != success) {
        return std::nullopt;
    }
    return found.gpu;
}

} // namespace lockstep::monitor
