#include "nn/to_device.hpp"

#include "nn/dropout_masks.hpp"

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

} // namespace lockstep::nn
