#include <cstdio>

#include "cuda_runtime_api.h"
#include "runtime.hpp"

namespace sim = lockstep::sim;

namespace {

sim::Stream& stream_of(cudaStream_t stream) {
    return *reinterpret_cast<sim::Stream*>(stream);
}
sim::Mark& mark_of(cudaEvent_t event) {
    return *reinterpret_cast<sim::Mark*>(event);
}
bool exists(int device) {
    return device >= 0 && device < sim::device_count();
}

} // namespace

extern "C" {

char const* cudaGetErrorString(cudaError_t error) {
    switch (error) {
    case cudaSuccess:
        return "no error";
    case cudaErrorMemoryAllocation:
        return "out of memory";
    case cudaErrorInvalidDevice:
        return "invalid device ordinal";
    case cudaErrorNotReady:
        return "device not ready";
    case cudaErrorLaunchFailure:
        break;
    }
    return "unspecified launch failure";
}
cudaError_t cudaGetDeviceCount(int* count) {
    *count = sim::device_count();
    return cudaSuccess;
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
cudaError_t cudaDeviceGetStreamPriorityRange(int* lowest, int* highest) {
    *lowest = 0;
    *highest = -5;
    return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
    *stream = reinterpret_cast<cudaStream_t>(&sim::new_stream(sim::current_device()));
    return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t) {
    return cudaSuccess; // all streams are the machine's
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
    if (mark_of(event) != nullptr) {
        sim::wait(stream_of(stream), mark_of(event));
    }
    return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
    *event = reinterpret_cast<cudaEvent_t>(new sim::Mark);
    return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
    delete &mark_of(event);
    return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    mark_of(event) = sim::record(stream_of(stream));
    return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
    return mark_of(event) == nullptr || sim::is_done(mark_of(event)) ? cudaSuccess
                                                                     : cudaErrorNotReady;
}

} // extern "C"
