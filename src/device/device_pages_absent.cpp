#include "base/expects.hpp"
#include "device/device_pages.hpp"

namespace lockstep::train {

// The drivers of GPUs offer it (cuMemMap, hipMemMap). Nothing that calls them is here before it has
// run on a GPU.
bool has_device_pages(torch::Device /*device*/) {
    return false;
}

std::unique_ptr<DevicePages> reserve_device_pages(torch::Device device, std::size_t /*bytes*/) {
    expects(has_device_pages(device), "pages are reserved on devices that have some");
    return nullptr;
}

} // namespace lockstep::train
