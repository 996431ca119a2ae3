#include "program/gradient_place.hpp"

#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/variable.h>

namespace lockstep::program {

at::Tensor claim_place_of_gradient(at::Tensor const& parameter) {
    if (parameter.requires_grad()) { // others have no place for a hook
        auto* const place = dynamic_cast<GradientPlace*>(
            torch::autograd::impl::post_acc_grad_hooks(parameter).get());
        if (auto memory = place == nullptr ? at::Tensor() : place->claim(); memory.defined()) {
            return memory;
        }
    }
    return at::empty(parameter.sizes(), parameter.options());
}

} // namespace lockstep::program
