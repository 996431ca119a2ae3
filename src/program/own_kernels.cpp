#include "program/own_kernels.hpp"

#include <ATen/TensorSubclassLikeUtils.h>
#include <ATen/autocast_mode.h>

namespace lockstep::program {

namespace {

/// Whether LibTorch does more with calls on this thread than to compute them: it records or traces
/// them, or converts their types.
bool calls_are_observed() {
    auto const added =
        c10::impl::tls_local_dispatch_key_set().included_ - c10::default_included_set;
    return !added.empty() || at::autocast::is_autocast_enabled(at::kCPU);
}

bool is_plain(at::Tensor const& inputs) {
    return inputs.is_cpu() && inputs.scalar_type() == at::kFloat &&
           inputs.layout() == at::kStrided && inputs.numel() > 0 && inputs.is_contiguous() &&
           inputs.suggest_memory_format() == at::MemoryFormat::Contiguous && !inputs.is_neg() &&
           !at::isTensorSubclassLike(inputs);
}

} // namespace

bool may_compute(at::Tensor const& inputs) {
    return !calls_are_observed() && is_plain(inputs);
}

} // namespace lockstep::program
