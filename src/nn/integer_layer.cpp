#include "nn/integer_layer.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "nn/integer_operator.hpp"
#include "nn/record_calls.hpp"

#include <ATen/core/dispatch/Dispatcher.h>

#include <utility>

namespace lockstep::nn {

namespace {

using Stack = torch::jit::Stack;

/// Calls an operator by its name: LibTorch has no C++ functions for these.
torch::Tensor call(char const* name, Stack stack) {
    auto const operation = c10::Dispatcher::singleton().findSchema({name, ""});
    if (!operation) {
        throw Error(ExitCode::unavailable,
                    {concat("operator ", name),
                     "this LibTorch was built without oneDNN's int8 operators",
                     "Use a LibTorch from pytorch.org for x86-64 or aarch64"});
    }
    operation->callBoxed(stack);
    return stack.front().toTensor();
}

/// No second operator is computed along.
c10::IValue no_scalars() {
    return c10::impl::GenericList(c10::OptionalType::create(c10::NumberType::get()));
}

} // namespace

IntegerLayer::IntegerLayer(WeightLayer const& layer, IntegerWeights weights)
    : layer_(layer), weights_(std::move(weights)),
      zeros_(torch::zeros_like(weights_.weight.scales, torch::kInt64)) {
    torch::NoGradGuard const no_grad;
    layer_.values = torch::Tensor(); // kept in `weights_`
    if (layer_.convolves) {
        packed_ = call("onednn::qconv_prepack",
                       {weights_.weight.values, weights_.weight.scales, weights_.inputs.scale,
                        weights_.inputs.zero, layer_.stride, layer_.padding, layer_.dilation,
                        layer_.groups, c10::IValue()});
    } else {
        packed_ = call("onednn::qlinear_prepack", {weights_.weight.values, c10::IValue()});
    }
}

torch::Tensor IntegerLayer::forward(torch::Tensor const& inputs) const {
    if (is_recording()) {
        return IntegerOperator::call(layer_, weights_, inputs);
    }
    auto const bytes = to_bytes(inputs.to(torch::kFloat32), weights_.inputs).contiguous();
    auto const real = static_cast<std::int64_t>(torch::kFloat32);
    Stack stack{bytes,   weights_.inputs.scale,  weights_.inputs.zero,
                packed_, weights_.weight.scales, zeros_};
    if (layer_.convolves) {
        stack.insert(stack.end(),
                     {weights_.bias, layer_.stride, layer_.padding, layer_.dilation, layer_.groups,
                      1.0, std::int64_t{0}, real, "none", no_scalars(), ""});
        return call("onednn::qconv_pointwise", std::move(stack));
    }
    stack.insert(stack.end(),
                 {weights_.bias, 1.0, std::int64_t{0}, real, "none", no_scalars(), ""});
    return call("onednn::qlinear_pointwise", std::move(stack));
}

} // namespace lockstep::nn
