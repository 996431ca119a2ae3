#pragma once

// The functions of the GPU's vendor that NCCL needs, under one name. CUDA and HIP offer the same
// functions under two prefixes, and RCCL keeps NCCL's names, so one nccl.cpp serves both. The HIP
// half was written from ROCm's documentation and has never been compiled.

#ifdef LOCKSTEP_USES_RCCL

#include <hip/hip_runtime_api.h>
#include <rccl/rccl.h>

namespace lockstep::comm::gpu {

using Result = hipError_t;
using Stream = hipStream_t;

inline constexpr char const* library = "RCCL";
inline constexpr auto success = hipSuccess;
inline constexpr auto& error_text = hipGetErrorString;
inline constexpr auto& set_device = hipSetDevice;
inline constexpr auto& bus_id = hipDeviceGetPCIBusId;

} // namespace lockstep::comm::gpu

#else

#include <cuda_runtime_api.h>
#include <nccl.h>

namespace lockstep::comm::gpu {

using Result = cudaError_t;
using Stream = cudaStream_t;

inline constexpr char const* library = "NCCL";
inline constexpr auto success = cudaSuccess;
inline constexpr auto& error_text = cudaGetErrorString;
inline constexpr auto& set_device = cudaSetDevice;
inline constexpr auto& bus_id = cudaDeviceGetPCIBusId;

} // namespace lockstep::comm::gpu

#endif

static_assert(NCCL_VERSION_CODE >= 21400, "NCCL 2.14 or newer is needed: starts without blocking");
