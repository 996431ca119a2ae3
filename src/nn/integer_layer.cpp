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
                    {concat("operator ", name, " is not available"),
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

/// The weight in oneDNN's own order.
torch::Tensor packed(WeightLayer const& layer, IntegerWeights const& weights) {
    if (!layer.convolves) {
        return call("onednn::qlinear_prepack", {weights.weight.values, c10::IValue()});
    }
    return call("onednn::qconv_prepack",
                {weights.weight.values, weights.weight.scales, weights.inputs.scale,
                 weights.inputs.zero, layer.stride, layer.padding, layer.dilation, layer.groups,
                 c10::IValue()});
}

/// Sums of products of bytes that stand for scale * (byte - zero), and of the bias, in float32.
torch::Tensor sums_of_products(WeightLayer const& layer, IntegerWeights const& weights,
                               torch::Tensor const& packed, torch::Tensor const& bytes,
                               std::int64_t zero, std::optional<torch::Tensor> const& bias) {
    auto const real = static_cast<std::int64_t>(torch::kFloat32);
    auto const zeros = torch::zeros_like(weights.weight.scales, torch::kInt64);
    Stack stack{bytes, weights.inputs.scale, zero, packed, weights.weight.scales, zeros, bias};
    if (layer.convolves) {
        stack.insert(stack.end(), {layer.stride, layer.padding, layer.dilation, layer.groups, 1.0,
                                   std::int64_t{0}, real, "none", no_scalars(), ""});
        return call("onednn::qconv_pointwise", std::move(stack));
    }
    stack.insert(stack.end(), {1.0, std::int64_t{0}, real, "none", no_scalars(), ""});
    return call("onednn::qlinear_pointwise", std::move(stack));
}

constexpr std::int64_t max_byte = 255;
constexpr std::int64_t max_weight = 127;

/// Whether oneDNN adds two products in 16 bits, which the largest do not fit into, as it does on
/// processors without VNNI.
bool saturates(WeightLayer layer, torch::Tensor const& values) {
    auto const outputs = values.size(0);
    IntegerWeights const largest{
        {torch::full_like(values, max_weight), torch::ones({outputs})}, {}, {}};
    std::vector<std::int64_t> shape{1, values.size(1) * (layer.convolves ? layer.groups : 1)};
    for (std::size_t i = 0; layer.convolves && i < layer.padding.size(); ++i) {
        layer.padding[i] = 0;
        auto const extent = values.size(static_cast<std::int64_t>(i) + 2);
        shape.push_back(layer.dilation[i] * (extent - 1) + 1); // one place alone has room
    }
    auto const found =
        sums_of_products(layer, largest, packed(layer, largest),
                         torch::full(shape, max_byte, torch::kUInt8), 0, std::nullopt);
    auto const exact = static_cast<double>(max_byte * max_weight * values.numel() / outputs);
    return !torch::allclose(found, torch::full_like(found, exact));
}

} // namespace

IntegerLayer::IntegerLayer(WeightLayer const& layer, IntegerWeights weights)
    : layer_(layer), weights_(std::move(weights)) {
    torch::NoGradGuard const no_grad;
    layer_.values = torch::Tensor(); // kept in `weights_`
    packed_ = packed(layer_, weights_);
    saturates_ = saturates(layer_, weights_.weight.values);
}

torch::Tensor IntegerLayer::forward(torch::Tensor const& inputs) const {
    if (is_recording()) {
        return IntegerOperator::call(layer_, weights_, inputs);
    }
    auto const bytes = to_bytes(inputs.to(torch::kFloat32), weights_.inputs).contiguous();
    auto const of = [&](torch::Tensor const& part, std::int64_t zero,
                        std::optional<torch::Tensor> const& bias) {
        return sums_of_products(layer_, weights_, packed_, part, zero, bias);
    };
    if (!saturates_) {
        return of(bytes, weights_.inputs.zero, weights_.bias);
    }
    // Two products with half a byte's range fit into 16 bits.
    auto const low = bytes.clamp_max(max_byte / 2);
    return of(low, weights_.inputs.zero, weights_.bias) + of(bytes - low, 0, std::nullopt);
}

} // namespace lockstep::nn
