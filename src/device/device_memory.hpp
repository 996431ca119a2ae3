#pragma once

#include <torch/types.h>

#include <cstdint>

namespace lockstep::train {

/// Bytes of a device's memory, as LibTorch's allocator counts them; zeros for the CPU.
struct DeviceMemory {
    std::int64_t allocated = 0;
    std::int64_t reserved = 0; ///< allocated, or kept for the next allocation
    std::int64_t peak = 0;     ///< allocated at most since the start
};
DeviceMemory device_memory(torch::Device device);

/// Bytes of a device, by whatever uses it.
struct DeviceSpace {
    std::uint64_t free = 0; ///< of no process, not even kept by an allocator
    std::uint64_t all = 0;
};
DeviceSpace device_space(torch::Device device); ///< not for the CPU

/// Bytes that this rank may still use for training: the free memory of its device, or its share of
/// the memory that the host has for `ranks_on_host` ranks.
std::uint64_t memory_to_train_in(torch::Device device, int ranks_on_host);

/// Returns memory that the allocator caches to the device: used between phases with other block
/// sizes, and after a failed allocation.
void release_device_cache(torch::Device device);

} // namespace lockstep::train
