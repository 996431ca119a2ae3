#include <cmath>
#include <limits>

#include "lowered_call.hpp"

namespace lockstep::lower {

namespace {

using deploy::Element;
using Id = GraphParts::Id;

Id scaled(LoweredCall& call, Id x, double factor) {
    return factor == 1 ? x : call.binary("Mul", x, call.graph().real(factor));
}

/// log(1 + exp(beta x)) / beta, and x where beta x is above the threshold.
Id softplus(LoweredCall& call, Id x, double beta, double threshold) {
    constexpr double same_above = 15; // there, both are equal in float32
    auto const soft = scaled(call, call.unary("Softplus", scaled(call, x, beta)), 1 / beta);
    if (threshold >= same_above) {
        return soft;
    }
    auto const above = call.compare("Greater", scaled(call, x, beta), call.graph().real(threshold));
    return call.where(above, x, soft);
}

void lower_softplus(LoweredCall& call) {
    call.give(softplus(call, call.tensor(0), call.number(1), call.number(2)));
}

/// x above 0, else alpha · (exp(inner · x) - 1), all times a scale.
Id elu(LoweredCall& call, double alpha, double scale, double inner) {
    auto const x = scaled(call, call.tensor(0), inner);
    return scaled(call, call.unary("Elu", x, {{"alpha", alpha * inner}}), scale / inner);
}

void lower_elu(LoweredCall& call) {
    auto const or_one = [&](std::size_t at) { return call.has(at) ? call.number(at) : 1; };
    call.give(elu(call, or_one(1), or_one(2), or_one(3)));
}

void lower_celu(LoweredCall& call) {
    call.give(elu(call, call.number(1), 1, 1 / call.number(1)));
}

void lower_gelu(LoweredCall& call) {
    call.give(call.unary("Gelu", call.tensor(0),
                         {{"tanh", std::int64_t{call.text(1) == "tanh" ? 1 : 0}}}));
}

void lower_silu(LoweredCall& call) {
    auto const x = call.tensor(0);
    call.give(call.binary("Mul", x, call.unary("Sigmoid", x)));
}

void lower_mish(LoweredCall& call) {
    auto const x = call.tensor(0);
    call.give(call.binary("Mul", x, call.unary("Tanh", call.unary("Softplus", x))));
}

void lower_glu(LoweredCall& call) { // (self, axis)
    auto const x = call.tensor(0);
    auto const axis = call.axis(1, call.shape(x).size());
    auto const all = call.shape(x)[static_cast<std::size_t>(axis)].count;
    call.require_own(x, axis);
    auto const gate = call.unary("Sigmoid", call.slice(x, axis, all / 2, all));
    call.give(call.binary("Mul", call.slice(x, axis, 0, all / 2), gate));
}

void lower_hardsigmoid(LoweredCall& call, bool times) {
    auto const x = call.tensor(0);
    auto const share = call.unary("Clip", call.binary("Add", x, call.graph().real(3)),
                                  {{"min", 0.0}, {"max", 6.0}});
    auto const sixth = call.graph().real(6);
    call.give(call.binary("Div", times ? call.binary("Mul", x, share) : share, sixth));
}

void lower_rrelu(LoweredCall& call) { // (self, lower, upper, training, generator)
    if (call.flag(3)) {
        call.refuse("its slopes are random, in evaluation, too");
    }
    auto const slope = (call.number(1) + call.number(2)) / 2;
    call.give(call.unary("LeakyRelu", call.tensor(0), {{"alpha", slope}}));
}

void lower_log_sigmoid(LoweredCall& call) {
    auto const x = call.tensor(0);
    call.give(call.unary("Neg", call.unary("Softplus", call.unary("Neg", x))));
}

/// What is not above the threshold becomes the value.
void lower_threshold(LoweredCall& call) {
    auto const x = call.tensor(0);
    call.give(call.where(call.compare("Greater", x, call.graph().real(call.number(1))), x,
                         call.graph().real(call.number(2))));
}

void lower_hardshrink(LoweredCall& call) {
    auto const x = call.tensor(0);
    auto const bound = call.graph().real(call.number(1));
    call.give(
        call.where(call.compare("Greater", call.unary("Abs", x), bound), x, call.graph().real(0)));
}

void lower_softshrink(LoweredCall& call) {
    auto const x = call.tensor(0);
    auto const bound = call.number(1);
    call.give(call.binary("Sub", x, call.unary("Clip", x, {{"min", -bound}, {"max", bound}})));
}

/// Returns the lowering of a softmax, or of its logarithm, along an axis.
Lowering softmax(std::string kind) {
    return [kind](LoweredCall& call) {
        auto const x = call.tensor(0);
        call.give(call.softmax(kind, x, call.axis(1, call.shape(x).size())));
    };
}

/// max + log(sum(exp(x - max))), where the largest may be infinite.
void lower_logsumexp(LoweredCall& call) { // (self, axes, keep)
    constexpr double finite_max = std::numeric_limits<float>::max();
    auto const x = call.cast(call.tensor(0), Element::f32);
    auto const axes = call.axes(1, call.shape(x).size());
    auto const finite = [&](Id largest) {
        return call.unary("Clip", largest, {{"min", -finite_max}, {"max", finite_max}});
    };
    auto const above = finite(call.reduce("ReduceMax", x, axes, true));
    auto const sum =
        call.reduce("ReduceSum", call.unary("Exp", call.binary("Sub", x, above)), axes, true);
    auto const found = call.binary("Add", call.unary("Log", sum), above);
    call.give(call.reshape(found, call.result_shape()));
}

void lower_logaddexp(LoweredCall& call) {
    auto const a = call.operand(0, Element::f32);
    auto const b = call.operand(1, Element::f32);
    auto const apart = call.unary("Abs", call.binary("Sub", a, b));
    auto const more = call.unary("Softplus", call.unary("Neg", apart));
    call.give(call.binary("Add", call.binary("Max", a, b), more));
}

/// The norm of order p over axes.
Id norm_along(LoweredCall& call, Id x, double p, std::vector<std::int64_t> const& axes, bool keep) {
    auto const sum = [&](Id of) { return call.reduce("ReduceSum", of, axes, keep); };
    if (p == 2) {
        return call.unary("Sqrt", sum(call.binary("Mul", x, x)));
    }
    if (p == 0) {
        auto const zero = call.compare("Equal", x, call.graph().real(0));
        return sum(call.cast(call.unary("Not", zero), Element::f32));
    }
    auto const size = call.unary("Abs", x);
    if (p == 1) {
        return sum(size);
    }
    if (std::isinf(p)) {
        return call.reduce(p > 0 ? "ReduceMax" : "ReduceMin", size, axes, keep);
    }
    auto const powers = sum(call.binary("Pow", size, call.graph().real(p)));
    return call.binary("Pow", powers, call.graph().real(1 / p));
}

/// (self, p, axes, keep)
void lower_norm(LoweredCall& call) {
    auto const x = call.cast(call.tensor(0), Element::f32);
    call.give(norm_along(call, x, call.has(1) ? call.number(1) : 2,
                         call.axes(2, call.shape(x).size()), call.flag(3)));
}

/// Lowers the distances of order p between rows of a and rows of b: [.., rows of a, rows of b].
void lower_distances(LoweredCall& call) {
    auto a = call.tensor(0);
    auto b = call.tensor(1);
    auto wide = call.shape(a);
    wide.insert(wide.end() - 1, deploy::Extent{});
    auto high = call.shape(b);
    high.insert(high.end() - 2, deploy::Extent{});
    auto const apart = call.binary("Sub", call.reshape(a, wide), call.reshape(b, high));
    auto const last = static_cast<std::int64_t>(wide.size()) - 1;
    call.give(norm_along(call, apart, call.number(2), {last}, false));
}

} // namespace

Lowerings lower_activations() {
    Lowerings table{
        {"aten::gelu", lower_gelu},
        {"aten::silu", lower_silu},
        {"aten::mish", lower_mish},
        {"aten::glu", lower_glu},
        {"aten::elu", lower_elu},
        {"aten::celu", lower_celu},
        {"aten::rrelu", lower_rrelu},
        {"aten::softplus", lower_softplus},
        {"aten::log_sigmoid", lower_log_sigmoid},
        {"aten::threshold", lower_threshold},
        {"aten::hardshrink", lower_hardshrink},
        {"aten::softshrink", lower_softshrink},
        {"aten::hardsigmoid", [](LoweredCall& call) { lower_hardsigmoid(call, false); }},
        {"aten::hardswish", [](LoweredCall& call) { lower_hardsigmoid(call, true); }},
        {"aten::leaky_relu",
         [](LoweredCall& call) {
             call.give(call.unary("LeakyRelu", call.tensor(0), {{"alpha", call.number(1)}}));
         }},
        {"aten::_prelu_kernel", // the slopes fit the input's shape
         [](LoweredCall& call) {
             call.give(call.binary("PRelu", call.tensor(0), call.tensor(1)));
         }},
        {"aten::softmax", softmax("Softmax")},
        {"aten::_softmax", softmax("Softmax")},
        {"aten::log_softmax", softmax("LogSoftmax")},
        {"aten::_log_softmax", softmax("LogSoftmax")},
        {"aten::logsumexp", lower_logsumexp},
        {"aten::logaddexp", lower_logaddexp},
        {"aten::linalg_vector_norm", lower_norm},
        {"aten::cdist", lower_distances},
        {"aten::norm", lower_norm},
    };
    for (auto const& [name, kind] :
         {std::pair{"relu", "Relu"}, {"sigmoid", "Sigmoid"}, {"tanh", "Tanh"}}) {
        table[std::string("aten::") + name] = [kind](LoweredCall& call) {
            call.give(call.unary(kind, call.operand(0, call.result_element())));
        };
    }
    return table;
}

} // namespace lockstep::lower
