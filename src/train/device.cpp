#include "train/device.hpp"

#include "base/gpus.hpp"
#include "base/text.hpp"
#include "comm/agree.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/train/trainer.hpp"

#include <torch/cuda.h>

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

torch::Device gpu(int index) {
    return {torch::kCUDA, static_cast<c10::DeviceIndex>(index)};
}

int torch_gpus() {
    return torch::cuda::is_available() ? static_cast<int>(torch::cuda::device_count()) : 0;
}

} // namespace

std::vector<torch::Device> concurrent_devices(config::Run const& run, int ranks) {
    bool const any_gpu = run.device == "auto" || run.device == "cuda";
    std::vector<torch::Device> devices;
    if (ranks == 1 && any_gpu && (run.mode == "dp" || run.mode == "auto")) {
        for (int const index : usable_gpus(run, torch_gpus())) {
            devices.push_back(gpu(index));
        }
    }
    return devices.size() > 1 ? devices : std::vector<torch::Device>{};
}

torch::Device choose_device(config::Run const& run, comm::Topology const& topology) {
    if (run.device == "cpu") {
        return torch::kCPU;
    }
    int const devices = torch_gpus();
    auto const usable = usable_gpus(run, devices);
    int const turn = comm::device_of(topology, static_cast<int>(usable.size()));
    int const own = turn < 0 ? -1 : usable[static_cast<std::size_t>(turn)];
    if (run.device == "auto") {
        return own < 0 ? torch::Device(torch::kCPU) : gpu(own);
    }
    bool const numbered = run.device.rfind("cuda:", 0) == 0;
    auto const digits = numbered ? run.device.substr(5) : std::string();
    bool const valid =
        run.device == "cuda" || (numbered && !digits.empty() && digits.size() < 4 &&
                                 digits.find_first_not_of("0123456789") == std::string::npos);
    if (!valid) {
        throw Error(ExitCode::usage, {concat("run.device = ", run.device),
                                      "expected auto, cpu, cuda or cuda:N", "Correct the value"});
    }
    int const index = numbered ? std::stoi(digits) : own;
    if (numbered && run.devices != "all") {
        throw Error(ExitCode::usage,
                    {concat("run.device = ", run.device, " and run.devices = ", run.devices),
                     "both name the devices", "Leave one of them out"});
    }
    if (index < 0 || index >= devices) {
        throw Error(ExitCode::unavailable,
                    {concat("run.device = ", run.device),
                     concat("LibTorch finds ", devices, " CUDA devices on this host"),
                     "Set run.device = auto or cpu, or check the driver and the LibTorch build"});
    }
    return gpu(index);
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
