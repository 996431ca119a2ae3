#pragma once

#include "lockstep/base/error.hpp"

#include <torch/types.h>

#include <optional>
#include <string_view>

namespace lockstep::nn {

/// A tensor of the host on `device`: a copy on the current stream, which later work there waits for
/// and the host does not. A tensor that is there already is returned as it is.
///
/// Throws  std::logic_error where the device records (dropout_masks.hpp) and a copy is needed: a
///         replay would copy from memory that has been reused
torch::Tensor to_device(torch::Tensor const& values, torch::Device device);

/// A tensor of a device on the host, once the current stream has computed it. Unlike Tensor::cpu,
/// which copies to pageable memory, it does not keep other threads from using the device meanwhile.
/// A tensor that is there already is returned as it is.
///
/// Shape   as `values`, contiguous where it is copied
/// Throws  std::logic_error where the device records
torch::Tensor to_host(torch::Tensor const& values);

/// The error (64) for LibTorch's `why`, if it says that an operator was given tensors on different
/// devices: the model made one of them on the host.
std::optional<Error> mixed_devices(std::string_view why);

} // namespace lockstep::nn
