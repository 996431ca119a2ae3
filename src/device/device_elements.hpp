#pragma once

#include "comm/collective_library.hpp"
#include "comm/partition.hpp"

#include <torch/types.h>

namespace lockstep::train {

/// The element type of messages between GPUs: float16, bfloat16, else float32.
inline comm::DeviceType device_type_of(torch::Tensor const& tensor) {
    return tensor.scalar_type() == torch::kHalf       ? comm::DeviceType::float16
           : tensor.scalar_type() == torch::kBFloat16 ? comm::DeviceType::bfloat16
                                                      : comm::DeviceType::float32;
}

inline torch::Tensor slice(torch::Tensor const& values, Range range) {
    return values.narrow(0, range.first, range.count());
}

/// `tensor` is contiguous, and must live until the operation is done.
inline comm::DeviceView view_of(torch::Tensor const& tensor) {
    return {tensor.const_data_ptr(), static_cast<std::size_t>(tensor.numel()),
            device_type_of(tensor)};
}

inline comm::DeviceSpan device_span_of(torch::Tensor const& tensor) {
    return {tensor.mutable_data_ptr(), static_cast<std::size_t>(tensor.numel()),
            device_type_of(tensor)};
}

} // namespace lockstep::train
