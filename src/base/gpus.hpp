#pragma once

#include "base/vendors.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

/// A GPU as its driver describes it.
struct Gpu {
    std::string name;       ///< "NVIDIA H200"
    std::string uuid;       ///< "GPU-6f2e…", the same for all processes of the host
    std::string capability; ///< "9.0"
    std::uint64_t memory = 0;
    std::string bus;    ///< "0000:17:00.0"
    int numa_node = -1; ///< nearest to it; -1: not known
};

/// The GPUs that this process may use, as this process numbers them: environment variables that
/// hide some are respected.
struct GpuListing {
    std::vector<Gpu> gpus;
    std::string kind;    ///< "cuda"; empty: no driver
    std::string driver;  ///< "570.86.15, CUDA 12.8"; empty: none
    std::string problem; ///< why there are none although a driver is installed
    std::vector<std::string>
        between; ///< [i * gpus + j]: "NVLink", "PCIe switch", …; empty: not known
};

/// Asks the drivers' own libraries, which are loaded only here: no build needs them. If there are
/// GPUs of several vendors, those of the first vendor that has any.
GpuListing list_gpus();

/// The GPUs of one vendor.
GpuListing list_gpus(Vendor const& vendor);

/// Which of `gpus` run.devices means: "all"; a count; or a list of numbers or UUIDs (or their
/// beginnings), where "2," is a list of one. In the order named.
///
/// Throws  Error 64 when it is none of these or names one twice; 69 when it names one that is not
///         here
std::vector<int> chosen_gpus(std::string const& devices, std::vector<Gpu> const& gpus);

} // namespace lockstep
