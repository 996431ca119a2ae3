#pragma once

#include <torch/types.h>

#include <cstddef>
#include <span>

namespace lockstep::train {

/// The elements of a contiguous tensor of float32 on the CPU; it must outlive what is returned.
inline std::span<float> span_of(torch::Tensor const& tensor) {
    return {tensor.mutable_data_ptr<float>(), static_cast<std::size_t>(tensor.numel())};
}

} // namespace lockstep::train
