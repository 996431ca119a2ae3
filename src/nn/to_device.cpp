#include "nn/to_device.hpp"

#include "nn/dropout_masks.hpp"

#include <stdexcept>

namespace lockstep::nn {

torch::Tensor to_device(torch::Tensor const& host, torch::Device device) {
    if (device.is_cpu()) {
        return host;
    }
    if (DropoutMasks::is_recorded()) {
        throw std::logic_error("values of the host are copied to the device");
    }
    // From pinned memory alone; torch keeps it until the copy is made.
    return host.pin_memory().to(device, /*non_blocking=*/true);
}

} // namespace lockstep::nn
