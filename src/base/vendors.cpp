#include "base/vendors.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>

namespace lockstep {

namespace {

// Of these, NVIDIA's driver alone has been asked so far. Intel's (Level Zero) is not: its devices
// are LibTorch's to find.
constexpr std::array<Vendor, 3> known{{
    {.kind = "cuda",
     .runtime = "CUDA",
     .visible = "CUDA_VISIBLE_DEVICES",
     .failed = "CUDA error: ",
     .tool = "nvidia-smi -q",
     .driver = {.libraries = {"libcuda.so.1"},
                .version = "cuDriverGetVersion",
                .start = "cuInit",
                .count = "cuDeviceGetCount",
                .device = "cuDeviceGet",
                .name = "cuDeviceGetName",
                .uuid = "cuDeviceGetUuid_v2",
                .capability = "cuDeviceComputeCapability",
                .memory = "cuDeviceTotalMem_v2",
                .bus = "cuDeviceGetPCIBusId"}},
    {.kind = "hip",
     .runtime = "HIP",
     .visible = "HIP_VISIBLE_DEVICES",
     .failed = "HIP error: ",
     .tool = "amd-smi static",
     .driver = {.libraries = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"},
                .version = "hipDriverGetVersion",
                .start = "hipInit",
                .count = "hipGetDeviceCount",
                .device = "hipDeviceGet",
                .name = "hipDeviceGetName",
                .uuid = "hipDeviceGetUuid",
                .capability = "hipDeviceComputeCapability",
                .memory = "hipDeviceTotalMem",
                .bus = "hipDeviceGetPCIBusId"}},
    {.kind = "xpu",
     .runtime = "Level Zero",
     .visible = "ZE_AFFINITY_MASK",
     .failed = "level_zero backend failed",
     .tool = "xpu-smi discovery"},
}};

} // namespace

std::span<Vendor const> vendors() {
    return known;
}

Vendor const* vendor_of(std::string_view device) {
    auto const* const found =
        std::ranges::find(known, device.substr(0, device.find(':')), &Vendor::kind);
    return found == known.end() ? nullptr : found;
}

std::string vendors_text(std::string_view Vendor::*value) {
    std::string text;
    for (std::size_t at = 0; at < known.size(); ++at) {
        text += concat(at == 0 ? "" : at + 1 == known.size() ? " or " : ", ", known[at].*value);
    }
    return text;
}

} // namespace lockstep
