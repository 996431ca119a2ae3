#include "program/step_operators.hpp"

#include "program/max_pool.hpp"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/max_pool2d_with_indices_backward.h>
#include <ATen/ops/mm.h>
#include <torch/library.h>

#include <optional>
#include <tuple>
#include <utility>

namespace lockstep::program {

namespace {

void mm_into(at::Tensor const& a, at::Tensor const& b, at::Tensor place) { // NOLINT
    at::mm_out(place, a, b);
}

/// Where weights are large (others do not come here): on AMD's processors MKL runs kernels for
/// older ones, and copies the weights for each product, so with few rows oneDNN is faster
/// (measured: docs/lab-notes/performance.md).
bool onednn_is_faster(at::Tensor const& x, at::Tensor const& weight) {
    constexpr std::int64_t min_rows = 8;
    constexpr std::int64_t max_rows = 256;
#if defined(__x86_64__)
    static bool const is_amd = __builtin_cpu_is("amd") != 0;
#else
    static bool const is_amd = false;
#endif
    return is_amd && x.scalar_type() == at::kFloat && x.size(0) >= min_rows &&
           x.size(0) <= max_rows && weight.is_contiguous();
}

at::Tensor linear(at::Tensor const& x, at::Tensor const& weight,
                  std::optional<at::Tensor> const& bias) {
    static auto const onednn =
        c10::Dispatcher::singleton().findSchema({"mkldnn::_linear_pointwise", ""});
    if (!onednn || !onednn_is_faster(x, weight)) {
        return at::linear(x, weight, bias);
    }
    torch::jit::Stack stack{x, weight,
                            // of which it does not look at the strides
                            bias ? std::optional(bias->contiguous()) : std::nullopt,
                            "none",                                 // applied to the result
                            c10::List<std::optional<at::Scalar>>{}, // its parameters
                            ""};                                    // its algorithm
    onednn->callBoxed(stack);
    return stack.front().toTensor();
}

std::tuple<at::Tensor, at::Tensor> max_pool2d(at::Tensor const& input, at::IntArrayRef kernel,
                                              at::IntArrayRef stride, at::IntArrayRef padding,
                                              at::IntArrayRef dilation, bool ceil_mode) {
    auto pooled = max_pool_with_indices(input, {.kernel = kernel.vec(),
                                                .stride = stride.vec(),
                                                .padding = padding.vec(),
                                                .dilation = dilation.vec(),
                                                .ceil_mode = ceil_mode});
    return {std::move(pooled.outputs), std::move(pooled.indices)};
}

/// Laid out in memory as the input is: LibTorch would go by the pooled gradient's layout, and copy
/// the larger tensors.
at::Tensor max_pool2d_backward(at::Tensor const& gradient, at::Tensor const& input,
                               at::IntArrayRef kernel, at::IntArrayRef stride,
                               at::IntArrayRef padding, at::IntArrayRef dilation, bool ceil_mode,
                               at::Tensor const& places) {
    return at::max_pool2d_with_indices_backward(gradient.contiguous(input.suggest_memory_format()),
                                                input, kernel, stride, padding, dilation, ceil_mode,
                                                places);
}

} // namespace

void register_step_operators() {
    static torch::Library const library = [] {
        torch::Library operators(torch::Library::FRAGMENT, "lockstep", std::nullopt, __FILE__,
                                 __LINE__);
        operators.def("mm_into(Tensor a, Tensor b, Tensor(a!) place) -> ()", &mm_into);
        operators.def("linear(Tensor x, Tensor weight, Tensor? bias) -> Tensor", &linear);
        // As LibTorch has them, with its defaults.
        operators.def("max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], "
                      "int[2] padding=0, int[2] dilation=1, bool ceil_mode=False) -> "
                      "(Tensor, Tensor)",
                      &max_pool2d);
        operators.def("max_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size, "
                      "int[2] stride, int[2] padding, int[2] dilation, bool ceil_mode, "
                      "Tensor indices) -> Tensor",
                      &max_pool2d_backward);
        return operators;
    }();
}

} // namespace lockstep::program
