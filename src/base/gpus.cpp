#include "base/gpus.hpp"

#include "base/driver_library.hpp"
#include "base/letter_case.hpp"
#include "base/number.hpp"
#include "base/nvml.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fstream>

namespace lockstep {

namespace {

std::string visible_text() {
    std::vector<std::string> names;
    for (auto const& vendor : vendors()) {
        names.emplace_back(vendor.visible);
    }
    return joined(names, ", ");
}

std::string uuid_text(std::array<unsigned char, 16> const& bytes) {
    std::string text = "GPU-";
    for (std::size_t at = 0; at < bytes.size(); ++at) {
        text += fmt::format("{}{:02x}", at == 4 || at == 6 || at == 8 || at == 10 ? "-" : "",
                            bytes[at]);
    }
    return text;
}

int numa_node_of(std::string const& bus) {
    std::ifstream file("/sys/bus/pci/devices/" + lower_case(bus) + "/numa_node");
    int node = -1;
    file >> node;
    return file ? node : -1;
}

Gpu described(DriverLibrary const& driver, DriverFunctions const& of, int device) {
    Gpu gpu;
    std::array<char, 256> text{};
    if (driver.call(of.name, text.data(), static_cast<int>(text.size()), device)) {
        gpu.name = text.data();
    }
    std::array<unsigned char, 16> uuid{};
    if (driver.call(of.uuid, uuid.data(), device)) {
        gpu.uuid = uuid_text(uuid);
    }
    int major = 0;
    int minor = 0;
    driver.call(of.capability, &major, &minor, device);
    gpu.capability = concat(major, ".", minor);
    std::size_t memory = 0;
    driver.call(of.memory, &memory, device);
    gpu.memory = memory;
    if (driver.call(of.bus, text.data(), static_cast<int>(text.size()), device)) {
        gpu.bus = text.data();
        gpu.numa_node = numa_node_of(gpu.bus);
    }
    return gpu;
}

/// The nearest thing that two GPUs have in common, by NVML's levels.
std::string path_text(int level) {
    return level <= 0    ? "the same card"
           : level <= 10 ? "PCIe switch"
           : level <= 20 ? "PCIe switches"
           : level <= 30 ? "PCIe host bridge"
           : level <= 40 ? "NUMA node"
                         : "between NUMA nodes";
}

std::string path_between(Nvml const& nvml, Nvml::Device one, Nvml::Device other) {
    if (one == other || one == nullptr || other == nullptr) {
        return "";
    }
    if (nvml.linked(one, other)) {
        return "NVLink";
    }
    auto const level = nvml.common_ancestor(one, other);
    return level ? path_text(*level) : "not known";
}

/// By NVIDIA's library, where the GPUs are NVIDIA's.
void add_links(GpuListing& listing) {
    Nvml const nvml;
    if (!nvml || nvml.on_bus(listing.gpus.front().bus) == nullptr) {
        return;
    }
    if (auto const version = nvml.driver_version(); !version.empty()) {
        listing.driver = concat(version, ", ", listing.driver);
    }
    std::vector<Nvml::Device> devices;
    for (auto const& gpu : listing.gpus) {
        devices.push_back(nvml.on_bus(gpu.bus));
    }
    for (auto* const one : devices) {
        for (auto* const other : devices) {
            listing.between.push_back(path_between(nvml, one, other));
        }
    }
}

int index_of(std::string const& name, std::string const& devices, std::vector<Gpu> const& gpus) {
    int index = number_of<int>(name).value_or(-1);
    if (name.starts_with("GPU-") || name.starts_with("MIG-")) {
        auto const found = std::find_if(gpus.begin(), gpus.end(),
                                        [&](Gpu const& gpu) { return gpu.uuid.starts_with(name); });
        index = static_cast<int>(found - gpus.begin());
    } else if (index < 0) {
        throw Error(ExitCode::usage,
                    {concat("run.devices = ", devices),
                     "expected all, a count, or a comma-separated list of numbers or UUIDs",
                     "Correct the value, for example to 0,1 or GPU-6f2e"});
    }
    if (index >= static_cast<int>(gpus.size())) {
        throw Error(
            ExitCode::unavailable,
            {concat("run.devices = ", devices),
             gpus.empty() ? std::string("this host has no GPU that can be used")
             : gpus.size() == 1
                 ? concat("this host has no GPU ", name, "; its only GPU is 0")
                 : concat("this host has no GPU ", name, "; its GPUs are 0 to ", gpus.size() - 1),
             concat("Choose GPUs of this host, which lockstep check lists. ", visible_text(),
                    " may hide some of them")});
    }
    return index;
}

} // namespace

GpuListing list_gpus() {
    GpuListing first;
    for (auto const& vendor : vendors()) {
        auto listing = list_gpus(vendor);
        if (!listing.gpus.empty()) {
            return listing;
        }
        if (first.kind.empty()) {
            first = std::move(listing);
        }
    }
    return first;
}

GpuListing list_gpus(Vendor const& vendor) {
    GpuListing listing;
    auto const& functions = vendor.driver;
    auto const found = std::ranges::find_if(functions.libraries, [](char const* name) {
        return name != nullptr && DriverLibrary(name);
    });
    if (found == functions.libraries.end()) {
        return listing;
    }
    DriverLibrary const driver(*found);
    listing.kind = vendor.kind;
    int version = 0;
    driver.call(functions.version, &version);
    listing.driver = concat(vendor.runtime, " ", version / 1000, ".", version % 1000 / 10);
    int count = 0;
    if (!driver.call(functions.start, 0U) || !driver.call(functions.count, &count)) {
        listing.problem = "the driver's library is installed, but the driver does not answer";
        return listing;
    }
    for (int index = 0; index < count; ++index) {
        int device = 0;
        driver.call(functions.device, &device, index);
        listing.gpus.push_back(described(driver, functions, device));
    }
    if (!listing.gpus.empty()) {
        add_links(listing);
    }
    return listing;
}

std::vector<int> chosen_gpus(std::string const& devices, std::vector<Gpu> const& gpus) {
    auto const text = std::string(trimmed(devices));
    std::vector<int> chosen;
    bool const is_list =
        text.find(',') != std::string::npos || text.starts_with("GPU-") || text.starts_with("MIG-");
    if (!is_list) {
        int const count =
            text == "all" ? static_cast<int>(gpus.size()) : number_of<int>(text).value_or(-1);
        if (count > static_cast<int>(gpus.size())) {
            throw Error(ExitCode::unavailable,
                        {concat("run.devices = ", devices),
                         concat("this host has only ", amount_of(gpus.size(), "GPU")),
                         "Lower this number, or set run.device = cpu"});
        }
        if (text != "all" && count < 1) {
            index_of("none", devices, gpus);
        }
        for (int index = 0; index < count; ++index) {
            chosen.push_back(index);
        }
        return chosen;
    }
    for (auto const& name : split(text, ',')) {
        if (name.empty()) {
            continue; // "2," is a list of one
        }
        int const index = index_of(name, devices, gpus);
        if (std::find(chosen.begin(), chosen.end(), index) != chosen.end()) {
            throw Error(ExitCode::usage,
                        {concat("run.devices = ", devices),
                         concat("GPU ", index, " is listed twice"), "List each GPU once"});
        }
        chosen.push_back(index);
    }
    return chosen;
}

} // namespace lockstep
