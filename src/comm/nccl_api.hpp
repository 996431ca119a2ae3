#pragma once

// The runtime of the GPU's vendor under one name, and its collective library. CUDA and HIP offer
// the same functions under two prefixes, and RCCL keeps NCCL's names, so one nccl.cpp serves both.
// The HIP half was written from ROCm's documentation and was compiled nowhere.

#ifdef LOCKSTEP_USES_RCCL

#include <hip/hip_runtime_api.h>
#include <rccl/rccl.h>

namespace lockstep::comm::gpu {

using Result = hipError_t;
using Stream = hipStream_t;
using Event = hipEvent_t;

inline constexpr auto success = hipSuccess;
inline constexpr auto not_ready = hipErrorNotReady;
inline constexpr auto out_of_memory = hipErrorOutOfMemory;
inline constexpr auto& error_text = hipGetErrorString;
inline constexpr auto& device_count = hipGetDeviceCount;
inline constexpr auto& set_device = hipSetDevice;
inline constexpr auto& bus_id = hipDeviceGetPCIBusId;
inline constexpr auto& priority_range = hipDeviceGetStreamPriorityRange;
inline constexpr auto& create_stream = hipStreamCreateWithPriority;
inline constexpr auto& destroy_stream = hipStreamDestroy;
inline constexpr auto stream_non_blocking = hipStreamNonBlocking;
inline constexpr auto& stream_wait = hipStreamWaitEvent;
inline constexpr auto& create_event = hipEventCreateWithFlags;
inline constexpr auto& destroy_event = hipEventDestroy;
inline constexpr auto event_without_timing = hipEventDisableTiming;
inline constexpr auto& record_event = hipEventRecord;
inline constexpr auto& query_event = hipEventQuery;

} // namespace lockstep::comm::gpu

#else

#include <cuda_runtime_api.h>
#include <nccl.h>

namespace lockstep::comm::gpu {

using Result = cudaError_t;
using Stream = cudaStream_t;
using Event = cudaEvent_t;

inline constexpr auto success = cudaSuccess;
inline constexpr auto not_ready = cudaErrorNotReady;
inline constexpr auto out_of_memory = cudaErrorMemoryAllocation;
inline constexpr auto& error_text = cudaGetErrorString;
inline constexpr auto& device_count = cudaGetDeviceCount;
inline constexpr auto& set_device = cudaSetDevice;
inline constexpr auto& bus_id = cudaDeviceGetPCIBusId;
inline constexpr auto& priority_range = cudaDeviceGetStreamPriorityRange;
inline constexpr auto& create_stream = cudaStreamCreateWithPriority;
inline constexpr auto& destroy_stream = cudaStreamDestroy;
inline constexpr auto stream_non_blocking = cudaStreamNonBlocking;
inline constexpr auto& stream_wait = cudaStreamWaitEvent;
inline constexpr auto& create_event = cudaEventCreateWithFlags;
inline constexpr auto& destroy_event = cudaEventDestroy;
inline constexpr auto event_without_timing = cudaEventDisableTiming;
inline constexpr auto& record_event = cudaEventRecord;
inline constexpr auto& query_event = cudaEventQuery;

} // namespace lockstep::comm::gpu

#endif

static_assert(NCCL_VERSION_CODE >= 21400, "NCCL 2.14 or newer is needed: starts without blocking");
