// Making tensors of torch's backend "sim", giving them another form, and copies from and to them.

#include <ATen/EmptyTensor.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include "torch_sim.hpp"

namespace lockstep::sim {

namespace {

using at::Tensor;

/// Without kernels nothing is copied but short lists of whole numbers, by which programs divide
/// their work (PyTorch's DDP does); the host finds zeros.
void copy_without_kernels(Tensor const& from, Tensor const& to) {
    constexpr std::size_t longest = 1 << 16;
    auto const view = [](Tensor const& each) {
        return is_on_device(each) ? kernel_view(each) : each;
    };
    if (from.scalar_type() == at::kInt && from.nbytes() <= longest) {
        view(to).copy_(view(from));
    } else if (!is_on_device(to)) {
        to.zero_();
    }
}

void copy_within_devices(Tensor const& from, Tensor const& to) {
    auto& on = current_stream(from.device().index());
    auto& other = current_stream(to.device().index());
    bool const between = from.device() != to.device();
    if (between) {
        wait(on, record(other)); // it may still be in use there
    }
    if (!has_kernels()) {
        launch(on, "copy_", {}, {});
        return;
    }
    launch_torch(on, "copy_", {range_of(from, false), range_of(to, true)},
                 [a = kernel_view(from), b = kernel_view(to)] { b.copy_(a); });
    if (between) {
        wait(other, record(on));
    }
}

void copy_to_device(Tensor const& from, Tensor const& to, bool non_blocking) {
    auto& on = current_stream(to.device().index());
    refuse_in_recording(on, "a copy of values of the host");
    if (!has_kernels()) {
        launch(on, "a copy to a device", {}, {});
        copy_without_kernels(from, to);
    } else if (is_pinned(from.const_data_ptr())) {
        launch_torch(on, "a copy from pinned memory", {range_of(from, false), range_of(to, true)},
                     [a = kernel_view(from), b = kernel_view(to)] { b.copy_(a); });
    } else { // the driver has taken pageable memory when it returns
        launch_torch(
            on, "a copy from the host", {range_of(to, true)},
            [a = from.to(to.scalar_type(), false, true), b = kernel_view(to)] { b.copy_(a); });
    }
    if (!non_blocking) {
        synchronize(on);
    }
}

void copy_to_host(Tensor const& from, Tensor const& to, bool non_blocking) {
    auto& on = current_stream(from.device().index());
    if (!has_kernels()) {
        launch(on, "a copy to the host", {}, {});
        copy_without_kernels(from, to);
        if (!non_blocking || !is_pinned(to.const_data_ptr())) {
            synchronize(on);
        }
        return;
    }
    if (is_pinned(to.const_data_ptr())) {
        launch_torch(on, "a copy to pinned memory", {range_of(from, false), range_of(to, true)},
                     [a = kernel_view(from), b = kernel_view(to)] { b.copy_(a); });
        if (!non_blocking) {
            synchronize(on);
        }
        return;
    }
    auto const staging = at::empty(to.sizes(), from.options().device(at::kCPU));
    launch_torch(on, "a copy to the host", {range_of(from, false)},
                 [a = kernel_view(from), staging] { staging.copy_(a); });
    synchronize(on);
    to.copy_(staging);
}

Tensor copy_from(Tensor const& from, Tensor const& to, bool non_blocking) {
    if (to.numel() == 0) {
        return to;
    }
    auto const source = from.expand(to.sizes()); // copy_ broadcasts
    if (!is_on_device(to)) {
        copy_to_host(source, to, non_blocking);
    } else if (is_on_device(from)) {
        copy_within_devices(source, to);
    } else {
        copy_to_device(source, to, non_blocking);
    }
    return to;
}

Tensor empty(at::IntArrayRef size, std::optional<at::ScalarType> type, std::optional<at::Layout>,
             std::optional<at::Device> where, std::optional<bool>,
             std::optional<at::MemoryFormat> format) {
    c10::OptionalDeviceGuard const guard(where);
    return at::detail::empty_generic(size, &device_allocator(),
                                     c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                     c10::dtype_or_default(type), format);
}

Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride,
                     std::optional<at::ScalarType> type, std::optional<at::Layout>,
                     std::optional<at::Device> where, std::optional<bool>) {
    c10::OptionalDeviceGuard const guard(where);
    return at::detail::empty_strided_generic(size, stride, &device_allocator(),
                                             c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                             c10::dtype_or_default(type));
}

Tensor const& resize(Tensor const& self, at::IntArrayRef size, std::optional<at::MemoryFormat>) {
    auto const bytes = at::detail::computeStorageNbytesContiguous(
        size, self.itemsize(), static_cast<std::size_t>(self.storage_offset()));
    auto const& storage = self.storage();
    if (bytes > storage.nbytes()) {
        TORCH_CHECK(storage.nbytes() == 0 || self.numel() == 0,
                    "sim: resize_ of memory with values in it");
        c10::DeviceGuard const guard(self.device());
        storage.set_data_ptr(device_allocator().allocate(bytes));
        storage.set_nbytes(bytes);
    }
    self.unsafeGetTensorImpl()->set_sizes_contiguous(size);
    return self;
}

void record_tensor(Tensor& self, c10::Stream user) {
    record_stream(self.storage().data(), stream_of(user));
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl("empty.memory_format", empty);
    m.impl("empty_strided", empty_strided);
    m.impl("resize_", resize);
    m.impl("_copy_from", copy_from);
    m.impl("record_stream", record_tensor);
    m.impl("as_strided", at::native::as_strided_tensorimpl);
    m.impl("view", static_cast<Tensor (*)(Tensor const&, at::IntArrayRef)>(at::native::view));
    m.impl("_reshape_alias", at::native::_reshape_alias);
    m.impl("unfold", at::native::unfold);
    m.impl("view_as_real", at::native::view_as_real);
    m.impl("view_as_complex", at::native::view_as_complex);
    m.impl("set_.source_Tensor", at::native::set_tensor_);
    m.impl("set_.source_Storage", static_cast<Tensor& (*)(Tensor&, at::Storage)>(at::native::set_));
    m.impl("set_.source_Storage_storage_offset", at::native::set_storage_cpu_);
}

// A copy is how torch makes what these stand for.
TORCH_LIBRARY_IMPL(aten, Conjugate, m) {
    m.impl("_copy_from", torch::CppFunction::makeFallthrough());
}
TORCH_LIBRARY_IMPL(aten, Negative, m) {
    m.impl("_copy_from", torch::CppFunction::makeFallthrough());
}

} // namespace

} // namespace lockstep::sim
