#pragma once

#include <torch/types.h>

namespace lockstep::nn {

/// A tensor of the host on `device`: a copy that later work of the current stream is behind, and
/// that the host does not wait for. A tensor that lies there already is returned as it is.
///
/// Throws  std::logic_error where the device records (dropout_masks.hpp) and a copy is needed: a
///         replay would copy from memory that is long used for something else
torch::Tensor to_device(torch::Tensor const& values, torch::Device device);

} // namespace lockstep::nn
