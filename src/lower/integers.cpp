#include "nn/integer_operator.hpp"

#include "lowered_call.hpp"

namespace lockstep::lower {

namespace {

using deploy::Element;

/// Inputs become bytes; then a layer in whole numbers.
void lower_integer_layer(LoweredCall& call) {
    auto const scale = call.number(4);
    auto const zero = call.whole(5);
    auto const x = call.tensor(0);
    auto const weight = call.tensor(1);
    bool const convolves = call.flag(10);
    if (call.shape(x).size() != (convolves ? call.shape(weight).size() : call.shape(x).size())) {
        call.refuse("its input has no batch dimension");
    }
    auto const bytes = call.graph().add("QuantizeLinear", {x}, {Element::u8, call.shape(x)},
                                        {{"scale", scale}, {"zero", zero}});
    deploy::Attributes attributes{{"scale", scale}, {"zero", zero}};
    if (convolves) {
        std::vector<std::int64_t> kernel;
        for (std::size_t at = 2; at < call.shape(weight).size(); ++at) {
            kernel.push_back(call.shape(weight)[at].count);
        }
        auto pads = call.wholes_of(7);
        auto const leading = pads;
        pads.insert(pads.end(), leading.begin(), leading.end());
        attributes.insert({{"kernel_shape", kernel},
                           {"strides", call.wholes_of(6)},
                           {"pads", pads},
                           {"dilations", call.wholes_of(8)},
                           {"group", call.whole(9)}});
    }
    call.give(call.graph().add(convolves ? "QuantizedConv" : "QuantizedGemm",
                               {bytes, weight, call.tensor(2), call.tensor(3)},
                               {Element::f32, call.result_shape()}, attributes));
}

} // namespace

Lowerings lower_integers() {
    return {{nn::IntegerOperator::name, lower_integer_layer}};
}

} // namespace lockstep::lower
