#pragma once

#include "comm/topology.hpp"
#include "lockstep/config/deck.hpp"

#include <torch/types.h>

#include <vector>

namespace lockstep::train {

/// The device of this rank: what the deck names; with `auto`, that of its local rank among the GPUs
/// that run.devices leaves, or the CPU where there is none.
///
/// Throws  Error 69 when the deck names a device that is not here, 64 when it is no device's name
torch::Device choose_device(config::Run const& run, comm::Topology const& topology);

/// Where the replicas of a process that is alone compute concurrently: the GPUs that run.devices
/// leaves, with run.mode = dp or auto; else none, and they are on the rank's own device.
///
/// Throws  as choose_device
std::vector<torch::Device> concurrent_devices(config::Run const& run, int ranks);

/// Makes LibTorch compute the same bits every time: thread count, deterministic operators,
/// denormals flushed to zero (they slow backward threefold), kernels chosen before there are
/// threads that compute. To be called before any of them is started.
void configure_torch(config::Run const& run);

/// Bytes of a device's memory, as LibTorch's allocator counts them; zeros for the CPU.
struct DeviceMemory {
    std::int64_t allocated = 0;
    std::int64_t reserved = 0; ///< allocated, or kept for the next allocation
    std::int64_t peak = 0;     ///< allocated at most since the start
};
DeviceMemory device_memory(torch::Device device);

/// Bytes that this rank may still take to train in: what is free of its device, or its share of
/// the memory that the host leaves to so many ranks.
std::uint64_t memory_to_train_in(torch::Device device, int ranks_on_host);

/// Gives what the allocator keeps for later back to the device: between phases whose blocks are of
/// other sizes, and after a failed allocation.
void release_device_cache(torch::Device device);

/// "cpu" or "cuda:0".
std::string device_text(torch::Device device);

} // namespace lockstep::train
