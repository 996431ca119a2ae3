#include "device/device.hpp"

#include "base/gpus.hpp"
#include "base/text.hpp"
#include "base/vendors.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "lockstep/base/error.hpp"

#include <ATen/Context.h>
#include <ATen/DeviceAccelerator.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>

namespace lockstep::train {

namespace {

/// What run.devices leaves of the GPUs that LibTorch can use. The driver is asked for more than
/// their number only where UUIDs have to be looked up.
std::vector<int> usable_gpus(config::Run const& run, int devices) {
    std::vector<Gpu> gpus(static_cast<std::size_t>(devices));
    if (run.devices.find('-') != std::string::npos) {
        gpus = list_gpus().gpus;
        gpus.resize(std::min(gpus.size(), static_cast<std::size_t>(devices)));
    }
    return chosen_gpus(run.devices, gpus);
}

torch::Device accelerator(int index) {
    return {at::accelerator::getAccelerator(true).value(), static_cast<c10::DeviceIndex>(index)};
}

/// What LibTorch can use: none without a driver.
int accelerators() {
    return static_cast<int>(at::accelerator::deviceCount());
}

/// The kind of device that run.device names, without its number.
std::string kind_of(std::string const& device) {
    return device.substr(0, device.find(':'));
}

/// The number in "cuda:1"; none in "cuda".
///
/// Throws  Error 64 when `device` is not a device's name
std::optional<int> number_in(std::string const& device) {
    auto const kind = kind_of(device);
    auto const digits = device.substr(std::min(kind.size() + 1, device.size()));
    bool const known = vendor_of(kind) != nullptr || (!kind.empty() && kind == accelerator_name());
    bool const whole = device.size() == kind.size() ||
                       (!digits.empty() && digits.size() < 4 &&
                        digits.find_first_not_of("0123456789") == std::string::npos);
    if (!known || !whole) {
        throw Error(ExitCode::usage, {concat("run.device = ", device),
                                      concat("expected auto, cpu, ", vendors_text(&Vendor::kind),
                                             ", or one device by its number, such as ",
                                             vendors().front().kind, ":1"),
                                      "Correct the value"});
    }
    return digits.empty() ? std::nullopt : std::optional(std::stoi(digits));
}

} // namespace

std::string accelerator_name() {
    auto const type = at::accelerator::getAccelerator();
    if (!type) {
        return {};
    }
    // PyTorch for ROCm keeps its name for CUDA's devices.
    return at::Context::hasROCM() ? "hip" : c10::DeviceTypeName(*type, /*lower_case=*/true);
}

void synchronize(torch::Device device) {
    if (!device.is_cpu()) {
        at::accelerator::synchronizeDevice(device.index());
    }
}

std::vector<torch::Device> concurrent_devices(config::Run const& run, int ranks) {
    bool const any = run.device == "auto" || run.device == accelerator_name();
    std::vector<torch::Device> devices;
    if (ranks == 1 && any && (run.mode == "dp" || run.mode == "auto")) {
        for (int const index : usable_gpus(run, accelerators())) {
            devices.push_back(accelerator(index));
        }
    }
    return devices.size() > 1 ? devices : std::vector<torch::Device>{};
}

torch::Device choose_device(config::Run const& run, comm::Topology const& topology) {
    if (run.device == "cpu") {
        return torch::kCPU;
    }
    int const devices = accelerators();
    auto const usable = usable_gpus(run, devices);
    int const turn = comm::device_of(topology, static_cast<int>(usable.size()));
    int const own = turn < 0 ? -1 : usable[static_cast<std::size_t>(turn)];
    if (run.device == "auto") {
        return own < 0 ? torch::Device(torch::kCPU) : accelerator(own);
    }
    auto const number = number_in(run.device);
    int const index = number.value_or(own);
    if (number && run.devices != "all") {
        throw Error(ExitCode::usage,
                    {concat("run.device = ", run.device, " and run.devices = ", run.devices),
                     "the two keys contradict each other, because run.device already selects a "
                     "single device",
                     concat("Set run.device = ", kind_of(run.device), ", or remove run.devices")});
    }
    auto const here = accelerator_name();
    if (kind_of(run.device) != here || index < 0 || index >= devices) {
        throw Error(
            ExitCode::unavailable,
            {concat("run.device = ", run.device),
             concat("LibTorch finds ",
                    amount_of(devices, concat(here.empty() ? "accelerator" : here, " device")),
                    " on this host"),
             "Set run.device = auto or cpu, or check the driver and the LibTorch build"});
    }
    return accelerator(index);
}

bool uses_accelerator(config::Run const& run) {
    return run.device == "auto" ? accelerators() > 0 : run.device != "cpu";
}

void require_one_kind(comm::Communicator const& world, torch::Device device) {
    std::array roots{static_cast<int>(device.type())};
    comm::broadcast(world, std::span<int>(roots));
    comm::agree(world, "choosing devices", [&] {
        if (roots.front() != static_cast<int>(device.type())) {
            auto const type = static_cast<c10::DeviceType>(roots.front());
            throw Error(ExitCode::unavailable,
                        {concat("this rank would compute on ", device_text(device),
                                ", but rank 0 on ", c10::DeviceTypeName(type, true)),
                         "devices of different kinds round differently, so the weights would "
                         "depend on where a replica is computed",
                         "Set run.device = cpu, or start ranks only where the same kind of device "
                         "is available"});
        }
    });
}

std::string device_of_rank(comm::Communicator const& world, config::Run const& run) {
    auto const topology = comm::Topology::discover(world);
    std::string device;
    comm::agree(world, "choosing devices",
                [&] { device = device_text(choose_device(run, topology)); });
    return device;
}

std::string device_text(torch::Device device) {
    return device.str();
}

} // namespace lockstep::train
