#include "nn/lowered_call.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lockstep::nn {

namespace {

using deploy::Element;

Lowering simple(std::string kind) {
    return [kind](LoweredCall& call) {
        call.give(call.unary(kind, call.operand(0, call.result_element())));
    };
}

Lowering two_of(std::string kind) {
    return [kind](LoweredCall& call) {
        auto const element = call.result_element();
        call.give(call.binary(kind, call.operand(0, element), call.operand(1, element)));
    };
}

Lowering comparison(std::string kind, bool inverted = false) {
    return [kind, inverted](LoweredCall& call) {
        auto const element = call.promoted(0, 1);
        auto const found = call.compare(kind, call.operand(0, element), call.operand(1, element));
        call.give(inverted ? call.unary("Not", found) : found);
    };
}

Lowering logical(std::string kind) {
    return [kind](LoweredCall& call) {
        if (call.result_element() != Element::boolean) {
            call.refuse("it is a bitwise operation on numbers, and only bool is supported");
        }
        call.give(call.compare(kind, call.operand(0, Element::boolean),
                               call.operand(1, Element::boolean)));
    };
}

/// a ± alpha · b
Lowering sum_of(std::string kind, bool swapped) {
    return [kind, swapped](LoweredCall& call) {
        auto const element = call.result_element();
        auto a = call.operand(0, element);
        auto b = call.operand(1, element);
        if (call.has(2) && call.number(2) != 1) {
            b = call.binary("Mul", b, call.operand(2, element));
        }
        call.give(swapped ? call.binary(kind, b, a) : call.binary(kind, a, b));
    };
}

void lower_div(LoweredCall& call) {
    auto const rounding = call.arguments() > 2 ? call.text(2) : std::string();
    auto const element = call.result_element();
    if (element != Element::f32 || (!rounding.empty() && rounding != "floor")) {
        call.refuse("only float32 is supported, with rounding_mode floor or none");
    }
    auto const found = call.binary("Div", call.operand(0, element), call.operand(1, element));
    call.give(rounding.empty() ? found : call.unary("Floor", found));
}

void lower_pow(LoweredCall& call) {
    auto const element = call.result_element();
    auto const base = call.operand(0, element);
    if (!call.is_tensor(1) && call.number(1) == 2) {
        call.give(call.binary("Mul", base, base));
    } else if (!call.is_tensor(1) && call.number(1) == 0.5) {
        call.give(call.unary("Sqrt", base));
    } else {
        call.give(call.binary("Pow", base, call.operand(1, element)));
    }
}

/// Bounds are arguments `low` and `high`, which may be missing.
void clip(LoweredCall& call, std::size_t low, std::size_t high) {
    constexpr double max = std::numeric_limits<float>::max();
    if (call.result_element() != Element::f32 || call.is_tensor(low) || call.is_tensor(high)) {
        call.refuse("only real values can be clamped, and only between constant bounds");
    }
    call.give(call.unary("Clip", call.tensor(0),
                         {{"min", call.has(low) ? call.number(low) : -max},
                          {"max", call.has(high) ? call.number(high) : max}}));
}

void lower_gelu(LoweredCall& call) {
    call.give(call.unary("Gelu", call.tensor(0),
                         {{"tanh", std::int64_t{call.text(1) == "tanh" ? 1 : 0}}}));
}

void lower_silu(LoweredCall& call) {
    auto const x = call.tensor(0);
    call.give(call.binary("Mul", x, call.unary("Sigmoid", x)));
}

void lower_elu(LoweredCall& call) {
    if ((call.has(2) && call.number(2) != 1) || (call.has(3) && call.number(3) != 1)) {
        call.refuse("its scales are not 1");
    }
    call.give(call.unary("Elu", call.tensor(0), {{"alpha", call.number(1)}}));
}

void lower_softplus(LoweredCall& call) {
    if (call.number(1) != 1) {
        call.refuse("its beta is not 1");
    }
    call.give(call.unary("Softplus", call.tensor(0)));
}

void lower_hardsigmoid(LoweredCall& call, bool times) {
    auto const x = call.tensor(0);
    auto const share = call.unary("Clip", call.binary("Add", x, call.graph().real(3)),
                                  {{"min", 0.0}, {"max", 6.0}});
    auto const sixth = call.graph().real(6);
    call.give(call.binary("Div", times ? call.binary("Mul", x, share) : share, sixth));
}

void lower_where(LoweredCall& call) {
    auto const element = call.result_element();
    call.give(call.where(call.operand(0, Element::boolean), call.operand(1, element),
                         call.operand(2, element)));
}

void lower_masked_fill(LoweredCall& call) {
    auto const element = call.result_element();
    call.give(call.where(call.operand(1, Element::boolean), call.operand(2, element),
                         call.operand(0, element)));
}

void lower_cast(LoweredCall& call) {
    call.give(call.cast(call.tensor(0), call.result_element()));
}

/// Argument 1 of a call, counted from 0.
std::vector<std::int64_t> reduced_axes(LoweredCall& call, std::size_t rank) {
    auto axes = call.has(1) && !call.is_tensor(1) ? call.wholes_of(1) : std::vector<std::int64_t>{};
    if (axes.empty()) {
        call.refuse("it reduces over all samples of a batch");
    }
    for (auto& axis : axes) {
        axis = axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis;
    }
    return axes;
}

Lowering reduction(std::string kind) { // of (self, axes, keep)
    return [kind](LoweredCall& call) {
        auto const x = call.cast(call.tensor(0), call.result_element());
        call.give(call.reduce(kind, x, reduced_axes(call, call.shape(x).size()), call.flag(2)));
    };
}

/// var and std, of (self, axes, correction or whether there is one, keep): the squares' sum over
/// their number less the correction
GraphParts::Id variance(LoweredCall& call) {
    if (call.arguments() != 4) {
        call.refuse("it reduces over all samples of a batch");
    }
    auto const x = call.tensor(0);
    auto const axes = reduced_axes(call, call.shape(x).size());
    double values = 1;
    for (auto const axis : axes) {
        values *= static_cast<double>(call.shape(x).at(static_cast<std::size_t>(axis)).count);
    }
    auto const count = std::max(0.0, values - (call.has(2) ? call.number(2) : 1));
    auto const centred = call.binary("Sub", x, call.reduce("ReduceMean", x, axes, true));
    auto const squares = call.binary("Mul", centred, centred);
    return call.binary("Div", call.reduce("ReduceSum", squares, axes, call.flag(3)),
                       call.graph().real(count));
}

Lowering softmax(std::string kind) {
    return [kind](LoweredCall& call) {
        auto const x = call.tensor(0);
        call.give(call.softmax(kind, x, call.axis(1, call.shape(x).size())));
    };
}

} // namespace

Lowerings lower_arithmetic() {
    Lowerings table{
        {"aten::add", sum_of("Add", false)},
        {"aten::sub", sum_of("Sub", false)},
        {"aten::rsub", sum_of("Sub", true)},
        {"aten::mul", two_of("Mul")},
        {"aten::minimum", two_of("Min")},
        {"aten::maximum", two_of("Max")},
        {"aten::div", lower_div},
        {"aten::pow", lower_pow},
        {"aten::rsqrt",
         [](LoweredCall& call) {
             call.give(call.unary("Reciprocal", call.unary("Sqrt", call.tensor(0))));
         }},
        {"aten::clamp", [](LoweredCall& call) { clip(call, 1, 2); }},
        {"aten::hardtanh", [](LoweredCall& call) { clip(call, 1, 2); }},
        {"aten::clamp_min", [](LoweredCall& call) { clip(call, 1, 99); }},
        {"aten::clamp_max", [](LoweredCall& call) { clip(call, 99, 1); }},
        {"aten::gelu", lower_gelu},
        {"aten::silu", lower_silu},
        {"aten::elu", lower_elu},
        {"aten::softplus", lower_softplus},
        {"aten::hardsigmoid", [](LoweredCall& call) { lower_hardsigmoid(call, false); }},
        {"aten::hardswish", [](LoweredCall& call) { lower_hardsigmoid(call, true); }},
        {"aten::leaky_relu",
         [](LoweredCall& call) {
             call.give(call.unary("LeakyRelu", call.tensor(0), {{"alpha", call.number(1)}}));
         }},
        {"aten::softmax", softmax("Softmax")},
        {"aten::_softmax", softmax("Softmax")},
        {"aten::log_softmax", softmax("LogSoftmax")},
        {"aten::_log_softmax", softmax("LogSoftmax")},
        {"aten::mean", reduction("ReduceMean")},
        {"aten::sum", reduction("ReduceSum")},
        {"aten::amax", reduction("ReduceMax")},
        {"aten::var", [](LoweredCall& call) { call.give(variance(call)); }},
        {"aten::std", [](LoweredCall& call) { call.give(call.unary("Sqrt", variance(call))); }},
        {"aten::where", lower_where},
        {"aten::masked_fill", lower_masked_fill},
        {"aten::eq", comparison("Equal")},
        {"aten::ne", comparison("Equal", true)},
        {"aten::lt", comparison("Less")},
        {"aten::le", comparison("LessOrEqual")},
        {"aten::gt", comparison("Greater")},
        {"aten::ge", comparison("GreaterOrEqual")},
        {"aten::logical_and", logical("And")},
        {"aten::logical_or", logical("Or")},
        {"aten::bitwise_and", logical("And")},
        {"aten::bitwise_or", logical("Or")},
        {"aten::logical_not",
         [](LoweredCall& call) {
             call.give(call.unary("Not", call.operand(0, Element::boolean)));
         }},
    };
    for (auto const* const name : {"to", "_to_copy", "type_as", "clone", "contiguous", "detach",
                                   "alias", "lift_fresh", "positive"}) {
        table[std::string("aten::") + name] = lower_cast;
    }
    for (auto const& [name, kind] : {std::pair{"relu", "Relu"},
                                     {"sigmoid", "Sigmoid"},
                                     {"tanh", "Tanh"},
                                     {"exp", "Exp"},
                                     {"log", "Log"},
                                     {"sqrt", "Sqrt"},
                                     {"abs", "Abs"},
                                     {"neg", "Neg"},
                                     {"erf", "Erf"},
                                     {"sin", "Sin"},
                                     {"cos", "Cos"},
                                     {"floor", "Floor"},
                                     {"ceil", "Ceil"},
                                     {"reciprocal", "Reciprocal"}}) {
        table[std::string("aten::") + name] = simple(kind);
    }
    return table;
}

} // namespace lockstep::nn
