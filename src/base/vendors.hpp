#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

namespace lockstep {

/// Functions of a driver's library, by which a process counts the devices that it may use and
/// learns what they are. They take the same arguments in CUDA's driver and in HIP.
struct DriverFunctions {
    std::array<char const*, 3> libraries{}; ///< the first that exists; none: not asked
    char const* version = nullptr;
    char const* start = nullptr;
    char const* count = nullptr;
    char const* device = nullptr;
    char const* name = nullptr;
    char const* uuid = nullptr;
    char const* capability = nullptr;
    char const* memory = nullptr;
    char const* bus = nullptr;
};

/// What differs between the vendors of accelerators. What they have in common is LibTorch's.
struct Vendor {
    std::string_view kind;    ///< in run.device: "cuda"
    std::string_view runtime; ///< "CUDA"
    char const* visible;      ///< environment variable that hides devices from a process
    std::string_view failed;  ///< how LibTorch's message about a failed device begins
    std::string_view tool;    ///< command that shows the devices
    DriverFunctions driver{};
};

std::span<Vendor const> vendors();

/// The vendor of a device, "cuda:1" or "cuda"; null: unknown.
Vendor const* vendor_of(std::string_view device);

/// A member of every vendor, as a list in a sentence: "cuda, hip or xpu".
std::string vendors_text(std::string_view Vendor::*value);

} // namespace lockstep
