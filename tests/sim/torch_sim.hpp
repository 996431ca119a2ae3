#pragma once

// What the files of torch's backend "sim" share.

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>
#include <c10/core/Stream.h>

#include <functional>
#include <vector>

#include "runtime.hpp"

namespace lockstep::sim {

inline constexpr auto device_type = c10::DeviceType::PrivateUse1;

c10::Stream as_torch(Stream& stream);
Stream& stream_of(c10::Stream const& stream);

/// The allocator of torch's tensors on the simulated devices, on the calling thread's device.
c10::Allocator& device_allocator();
/// The allocator of host memory that is copied without the host's waiting.
c10::Allocator& pinned_allocator();

bool is_on_device(at::Tensor const& tensor);
/// Whether `tensor` stands for a number that C++ wrote beside a tensor; those decide no type.
void mark_number_as(at::Tensor const& tensor, at::Tensor const& made);
/// A tensor as kernels see it: one of the CPU, on the same memory.
at::Tensor kernel_view(at::Tensor const& tensor);
Range range_of(at::Tensor const& tensor, bool writes);

/// Launches work on tensors of the CPU, with the calling thread's rounding mode and its number of
/// threads, which decide bits.
void launch_torch(Stream& on, char const* kernel, std::vector<Range> const& ranges,
                  std::function<void()> work);

} // namespace lockstep::sim
