#include "torch_sim.hpp"

#include <ATen/EmptyTensor.h>
#include <ATen/Parallel.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/from_blob.h>

#include <xmmintrin.h>

namespace lockstep::sim {

c10::Stream as_torch(Stream& stream) {
    return c10::Stream(c10::Stream::UNSAFE,
                       {device_type, static_cast<c10::DeviceIndex>(device_of(stream))},
                       id_of(stream));
}

Stream& stream_of(c10::Stream const& stream) {
    return sim::stream(stream.device_index(), stream.id());
}

bool is_on_device(at::Tensor const& tensor) {
    return tensor.defined() && tensor.device().type() == device_type;
}

void mark_number_as(at::Tensor const& tensor, at::Tensor const& made) {
    if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) {
        made.unsafeGetTensorImpl()->set_wrapped_number(true);
    }
}

Range range_of(at::Tensor const& tensor, bool writes) {
    auto const bytes =
        tensor.numel() == 0
            ? 0
            : at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(), tensor.itemsize());
    return {tensor.const_data_ptr(), bytes, writes};
}

at::Tensor kernel_view(at::Tensor const& tensor) {
    auto const [data, bytes, writes] = range_of(tensor, false);
    auto view = at::from_blob(kernel_view(data, bytes), tensor.sizes(), tensor.strides(),
                              tensor.options().device(at::kCPU).pinned_memory(false));
    mark_number_as(tensor, view);
    view._set_conj(tensor.is_conj());
    view._set_neg(tensor.is_neg());
    return view;
}

void launch_torch(Stream& on, char const* kernel, std::vector<Range> const& ranges,
                  std::function<void()> work) {
    constexpr unsigned exceptions = 0x3F; // have been raised: no mode
    launch(on, kernel, ranges,
           [modes = _mm_getcsr() & ~exceptions, threads = at::get_num_threads(),
            work = std::move(work)] {
               _mm_setcsr(modes);
               thread_local int set = -1;
               if (set != threads) {
                   at::set_num_threads(set = threads);
               }
               at::AutoDispatchBelowADInplaceOrView const below;
               work();
           });
}

} // namespace lockstep::sim
