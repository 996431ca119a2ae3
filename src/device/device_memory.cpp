#include "device/device_memory.hpp"

#include "base/memory.hpp"

#include <ATen/DeviceAccelerator.h>

namespace lockstep::train {

DeviceMemory device_memory(torch::Device device) {
    if (device.is_cpu()) {
        return {};
    }
    auto const stats = at::accelerator::getDeviceStats(device.index());
    auto const all = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    return {stats.allocated_bytes[all].current, stats.reserved_bytes[all].current,
            stats.allocated_bytes[all].peak};
}

DeviceSpace device_space(torch::Device device) {
    auto const [free, all] = at::accelerator::getMemoryInfo(device.index());
    return {free, all};
}

std::uint64_t memory_to_train_in(torch::Device device, int ranks_on_host) {
    return device.is_cpu() ? memory_share(ranks_on_host) : device_space(device).free;
}

void release_device_cache(torch::Device device) {
    if (!device.is_cpu()) {
        at::accelerator::emptyCache();
    }
}

} // namespace lockstep::train
