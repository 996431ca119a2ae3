// Stands for the NVIDIA driver's library in tests: three GPUs, of which the n-th is busy 10 n per
// cent and has taken 5 n joules; LOCKSTEP_FAKE_NVML names the one that "this process" computes on.

#include <cstdlib>
#include <cstring>
#include <unistd.h>

namespace {
int devices[3];

struct Utilization {
    unsigned int gpu;
    unsigned int memory;
};

struct Process {
    unsigned int id;
    unsigned long long used_memory;
    unsigned int gpu_instance;
    unsigned int compute_instance;
};
} // namespace

extern "C" {

int nvmlInit_v2() {
    return 0;
}
int nvmlShutdown() {
    return 0;
}
int nvmlDeviceGetCount_v2(unsigned int* count) {
    *count = 3;
    return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void** device) {
    *device = &devices[index % 3];
    return index < 3 ? 0 : 2;
}
int nvmlDeviceGetHandleByUUID(char const* uuid, void** device) {
    *device = &devices[2];
    return std::strcmp(uuid, "GPU-two") == 0 ? 0 : 6;
}
int nvmlDeviceGetUtilizationRates(void* device, Utilization* utilization) {
    utilization->gpu = static_cast<unsigned int>(10 * (static_cast<int*>(device) - devices));
    return 0;
}
int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* millijoules) {
    *millijoules = 5000ULL * static_cast<unsigned long long>(static_cast<int*>(device) - devices);
    return 0;
}
int nvmlDeviceGetUUID(void* device, char* uuid, unsigned int length) {
    std::strncpy(uuid, device == &devices[2] ? "GPU-two" : "GPU-other", length);
    return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v2(void* device, unsigned int* count, Process* processes) {
    char const* const ours = std::getenv("LOCKSTEP_FAKE_NVML");
    *count = ours != nullptr && device == &devices[std::atoi(ours)] ? 1 : 0;
    if (*count == 1) {
        processes[0] = {static_cast<unsigned int>(::getpid()), 0, 0, 0};
    }
    return 0;
}
}
