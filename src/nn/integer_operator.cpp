#include "nn/integer_operator.hpp"

#include <ATen/core/dispatch/Dispatcher.h>

namespace lockstep::nn {

namespace {

torch::Tensor compute(torch::Tensor const& inputs, torch::Tensor const& values,
                      torch::Tensor const& scales, torch::Tensor const& bias, double scale,
                      std::int64_t zero, at::IntArrayRef stride, at::IntArrayRef padding,
                      at::IntArrayRef dilation, std::int64_t groups, bool convolves) {
    WeightLayer const layer{.weight = {},
                            .values = values,
                            .bias = bias,
                            .convolves = convolves,
                            .stride = stride.vec(),
                            .padding = padding.vec(),
                            .dilation = dilation.vec(),
                            .groups = groups};
    return IntegerLayer(layer, {{values, scales}, bias, {scale, zero}}).forward(inputs);
}

} // namespace

IntegerOperator::IntegerOperator()
    : library_(torch::Library::FRAGMENT, "lockstep", std::nullopt, __FILE__, __LINE__) {
    library_.def("integer_layer(Tensor inputs, Tensor values, Tensor scales, Tensor bias, "
                 "float scale, int zero, int[] stride, int[] padding, int[] dilation, int groups, "
                 "bool convolves) -> Tensor",
                 compute);
}

torch::Tensor IntegerOperator::call(WeightLayer const& layer, IntegerWeights const& weights,
                                    torch::Tensor const& inputs) {
    torch::jit::Stack stack{inputs,       weights.weight.values, weights.weight.scales,
                            weights.bias, weights.inputs.scale,  weights.inputs.zero,
                            layer.stride, layer.padding,         layer.dilation,
                            layer.groups, layer.convolves};
    c10::Dispatcher::singleton().findSchemaOrThrow(name, "").callBoxed(stack);
    return stack.front().toTensor();
}

} // namespace lockstep::nn
