#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function_hook.h>

namespace lockstep::program {

/// The hook of a parameter whose gradients are collected elsewhere than autograd keeps them.
class GradientPlace : public torch::autograd::PostAccumulateGradHook {
  public:
    /// Where the parameter's next gradient will be kept. Whoever claims this memory writes the
    /// whole gradient into it, and returns it from the next backward pass, so that it need not be
    /// copied.
    ///
    /// Shape    that of the parameter, contiguous; undefined if the next gradient is added to
    ///          others, or if this memory is claimed already
    virtual at::Tensor claim() = 0;
};

/// The place of the parameter's hook, or new memory where it has none.
///
/// Shape  that of the parameter, contiguous; contents undefined
at::Tensor claim_place_of_gradient(at::Tensor const& parameter);

} // namespace lockstep::program
