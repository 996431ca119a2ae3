#include <cstdio>

#include "cuda_runtime_api.h"
#include "runtime.hpp"

namespace sim = lockstep::sim;

namespace {

bool exists(int device) {
    return device >= 0 && device < sim::device_count();
}

} // namespace

extern "C" {

char const* cudaGetErrorString(cudaError_t error) {
    return error == cudaSuccess ? "no error" : "invalid device ordinal";
}
cudaError_t cudaSetDevice(int device) {
    if (!exists(device)) {
        return cudaErrorInvalidDevice;
    }
    sim::set_current_device(device);
    return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int size, int device) {
    if (!exists(device)) {
        return cudaErrorInvalidDevice;
    }
    std::snprintf(text, static_cast<std::size_t>(size), "0000:%02x:00.0", device + 16);
    return cudaSuccess;
}

} // extern "C"
