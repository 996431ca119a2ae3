#pragma once

#include <torch/types.h>

namespace lockstep::nn {

/// A tensor of the host on `device`: a copy that later work of the current stream is behind, and
/// that the host does not wait for. On the CPU the tensor itself.
inline torch::Tensor to_device(torch::Tensor const& host, torch::Device device) {
    // From pinned memory alone; torch keeps it until the copy is made.
    return device.is_cpu() ? host : host.pin_memory().to(device, /*non_blocking=*/true);
}

} // namespace lockstep::nn
