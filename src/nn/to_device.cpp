#include "nn/to_device.hpp"

#include "nn/dropout_masks.hpp"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <stdexcept>

namespace lockstep::nn {

torch::Tensor to_device(torch::Tensor const& values, torch::Device device) {
    if (values.device() == device) {
        return values;
    }
    if (DropoutMasks::is_recorded()) {
        throw std::logic_error("values of the host are copied to the device");
    }
    // From pinned memory alone; torch keeps it until the copy is made.
    return values.pin_memory().to(device, /*non_blocking=*/true);
}

torch::Tensor to_host(torch::Tensor const& values) {
    if (values.is_cpu()) {
        return values;
    }
    if (DropoutMasks::is_recorded()) {
        throw std::logic_error("the host waits for values of the device");
    }
    auto const here = torch::empty(values.sizes(),
                                   torch::TensorOptions(values.scalar_type()).pinned_memory(true));
    here.copy_(values.detach(), /*non_blocking=*/true);
    c10::impl::VirtualGuardImpl const streams(values.device().type());
    streams.synchronizeStream(streams.getStream(values.device()));
    return here;
}

std::optional<Error> mixed_devices(std::string_view why) {
    if (why.find("on the same device") == std::string_view::npos) {
        return std::nullopt;
    }
    while (why.ends_with('!') || why.ends_with('.')) {
        why.remove_suffix(1);
    }
    return Error(ExitCode::usage,
                 {"the model computes with tensors on different devices", std::string(why),
                  "In a script or an exported program, create tensors on the device of an input "
                  "(torch.zeros(…, device=x.device)) and register constants as buffers; or set "
                  "run.device = cpu"});
}

} // namespace lockstep::nn
