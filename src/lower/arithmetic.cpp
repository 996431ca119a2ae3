#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <tuple>

#include "lowered_call.hpp"

namespace lockstep::lower {

namespace {

using deploy::Element;
using Id = GraphParts::Id;

Lowering simple(std::string kind) {
    return [kind](LoweredCall& call) {
        call.give(call.unary(kind, call.operand(0, call.result_element())));
    };
}

Lowering two_of(std::string kind) {
    return [kind](LoweredCall& call) {
        auto const element = call.result_element();
        auto const a = call.operand(0, element);
        auto const b = call.operand(1, element);
        bool const both = element == Element::boolean && kind == "Mul";
        call.give(call.binary(both ? "And" : kind, a, b));
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

Id truncated(LoweredCall& call, Id x) {
    auto const below = call.compare("Less", x, call.graph().real(0));
    return call.where(below, call.unary("Ceil", x), call.unary("Floor", x));
}

/// What is left of a division whose quotient is rounded towards 0, or down.
Id rest_of(LoweredCall& call, bool down) {
    auto const element = call.result_element();
    auto const a = call.operand(0, element);
    auto const b = call.operand(1, element);
    auto const rest =
        call.graph().add("Mod", {a, b}, {element, deploy::broadcast(call.shape(a), call.shape(b))},
                         {{"fmod", std::int64_t{1}}});
    if (!down) {
        return rest;
    }
    auto const zero = call.cast(call.graph().real(0), element);
    auto const differ = call.compare("Less", call.binary("Mul", rest, b), zero);
    return call.where(differ, call.binary("Add", rest, b), rest);
}

/// a / b, of real values rounded so or not at all.
void divide(LoweredCall& call, std::string const& rounding) {
    auto const element = call.result_element();
    auto const a = call.operand(0, element);
    auto const b = call.operand(1, element);
    if (element != Element::f32) { // those of whole numbers are rounded towards 0
        auto const whole = rounding == "floor" ? call.binary("Sub", a, rest_of(call, true)) : a;
        call.give(call.binary("Div", whole, b));
        return;
    }
    auto const found = call.binary("Div", a, b);
    call.give(rounding.empty()      ? found
              : rounding == "floor" ? call.unary("Floor", found)
                                    : truncated(call, found));
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

/// ONNX has no ArgMin.
Id place_of_extreme(LoweredCall& call, Id x, std::int64_t axis, bool keep, bool largest) {
    auto shape = call.shape(x);
    call.require_own(x, axis);
    auto const values = call.cast(largest ? x : call.unary("Neg", x), Element::f32);
    if (keep) {
        shape[static_cast<std::size_t>(axis)] = {};
    } else {
        shape.erase(shape.begin() + axis);
    }
    return call.graph().add("ArgMax", {values}, {Element::i64, shape},
                            {{"axis", axis}, {"keepdims", std::int64_t{keep ? 1 : 0}}});
}

/// Bounds are arguments `low` and `high`, which may be missing.
void clip(LoweredCall& call, std::size_t low, std::size_t high) {
    constexpr double max = std::numeric_limits<float>::max();
    auto const element = call.result_element();
    if (element != Element::f32 || call.is_tensor(low) || call.is_tensor(high)) {
        auto x = call.operand(0, element);
        x = call.has(low) ? call.binary("Max", x, call.operand(low, element)) : x;
        call.give(call.has(high) ? call.binary("Min", x, call.operand(high, element)) : x);
        return;
    }
    call.give(call.unary("Clip", call.tensor(0),
                         {{"min", call.has(low) ? call.number(low) : -max},
                          {"max", call.has(high) ? call.number(high) : max}}));
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

Lowering reduction(std::string kind) { // of (self, axes, keep)
    return [kind](LoweredCall& call) {
        auto const x = call.cast(call.tensor(0), call.result_element());
        call.give(call.reduce(kind, x, call.axes(1, call.shape(x).size()), call.flag(2)));
    };
}

/// (self, axis, keep): what is largest or smallest, and where.
Lowering extreme(bool largest) {
    return [largest](LoweredCall& call) {
        if (call.is_tensor(1)) { // the larger of two
            two_of(largest ? "Max" : "Min")(call);
            return;
        }
        auto const x = call.tensor(0);
        auto const axes = call.axes(1, call.shape(x).size());
        call.give(call.reduce(largest ? "ReduceMax" : "ReduceMin", x, axes, call.flag(2)));
        call.give(place_of_extreme(call, x, axes.front(), call.flag(2), largest));
    };
}

Lowering place_of(bool largest) {
    return [largest](LoweredCall& call) {
        auto const x = call.tensor(0);
        auto const axis = call.axes(1, call.shape(x).size()).front();
        call.give(place_of_extreme(call, x, axis, call.flag(2), largest));
    };
}

void lower_lerp(LoweredCall& call) { // (start, end, weight)
    auto const start = call.tensor(0);
    auto const way = call.binary("Sub", call.tensor(1), start);
    call.give(call.binary("Add", start, call.binary("Mul", way, call.operand(2, Element::f32))));
}

/// self + value · a ∘ b
Lowering added_to(std::string kind) {
    return [kind](LoweredCall& call) {
        auto found = call.binary(kind, call.tensor(1), call.tensor(2));
        if (call.number(3) != 1) {
            found = call.binary("Mul", found, call.graph().real(call.number(3)));
        }
        call.give(call.binary("Add", call.tensor(0), found));
    };
}

Lowering times(std::string kind, double factor) {
    return [kind, factor](LoweredCall& call) {
        auto const found = call.unary(kind, call.operand(0, Element::f32));
        call.give(call.binary("Mul", found, call.graph().real(factor)));
    };
}

void lower_logit(LoweredCall& call) { // (self, how near 0 and 1 counts)
    auto x = call.tensor(0);
    if (call.has(1)) {
        x = call.unary("Clip", x, {{"min", call.number(1)}, {"max", 1 - call.number(1)}});
    }
    auto const other = call.binary("Sub", call.graph().real(1), x);
    call.give(call.unary("Log", call.binary("Div", x, other)));
}

Id not_a_number(LoweredCall& call, Id x) {
    return call.unary("Not", call.compare("Equal", x, x));
}

void lower_nan_to_num(LoweredCall& call) { // (self, instead of NaN, of ∞, of -∞)
    constexpr double infinite = std::numeric_limits<double>::infinity();
    constexpr double max = std::numeric_limits<float>::max();
    auto const x = call.tensor(0);
    auto const or_else = [&](std::size_t at, double value) {
        return call.graph().real(call.has(at) ? call.number(at) : value);
    };
    auto found = call.where(not_a_number(call, x), or_else(1, 0), x);
    for (auto const& [at, bound, most] :
         {std::tuple{std::size_t{2}, infinite, max}, {std::size_t{3}, -infinite, -max}}) {
        auto const is = call.compare("Equal", x, call.graph().real(bound));
        found = call.where(is, or_else(at, most), found);
    }
    call.give(found);
}

/// What lies beyond a diagonal of matrices becomes 0.
Lowering triangle(bool upper) {
    return [upper](LoweredCall& call) {
        auto const x = call.tensor(0);
        auto const& shape = call.shape(x);
        auto const rows = shape.at(shape.size() - 2).count;
        auto const columns = shape.back().count;
        call.require_own(x, static_cast<std::int64_t>(shape.size()) - 1);
        call.require_own(x, static_cast<std::int64_t>(shape.size()) - 2);
        std::vector<std::byte> stays;
        for (std::int64_t i = 0; i < rows * columns; ++i) {
            auto const beyond = i % columns - i / columns - call.whole(1);
            stays.push_back(static_cast<std::byte>(upper ? beyond >= 0 : beyond <= 0));
        }
        auto const mask = call.graph().constant({}, Element::boolean,
                                                deploy::fixed_shape({rows, columns}), stays);
        call.give(call.where(mask, x, call.cast(call.graph().real(0), call.result_element())));
    };
}

/// Whether any of the values along axes is not 0, or all are not.
Lowering any_of(bool all) {
    return [all](LoweredCall& call) {
        auto const x = call.operand(0, Element::boolean);
        auto const values = call.cast(all ? call.unary("Not", x) : x, Element::f32);
        auto const most =
            call.reduce("ReduceMax", values, call.axes(1, call.shape(x).size()), call.flag(2));
        auto const found = call.cast(most, Element::boolean);
        call.give(all ? call.unary("Not", found) : found);
    };
}

/// var and std, of (self, axes, correction or whether there is one, keep): the squares' sum over
/// their number less the correction
Id variance(LoweredCall& call) {
    if (call.arguments() != 4) {
        call.refuse("it reduces over all samples of a batch");
    }
    auto const x = call.tensor(0);
    auto const axes = call.axes(1, call.shape(x).size());
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

Id mean_of(LoweredCall& call) { // of the same arguments
    auto const x = call.tensor(0);
    return call.reduce("ReduceMean", x, call.axes(1, call.shape(x).size()), call.flag(3));
}

} // namespace

Lowerings lower_arithmetic() {
    auto const negation = [](LoweredCall& call) {
        if (call.result_element() != Element::boolean) {
            call.refuse("it is a bitwise operation on numbers, and only bool is supported");
        }
        call.give(call.unary("Not", call.operand(0, Element::boolean)));
    };
    Lowerings table{
        {"aten::add", sum_of("Add", false)},
        {"aten::sub", sum_of("Sub", false)},
        {"aten::rsub", sum_of("Sub", true)},
        {"aten::mul", two_of("Mul")},
        {"aten::minimum", two_of("Min")},
        {"aten::maximum", two_of("Max")},
        {"aten::div",
         [](LoweredCall& call) { divide(call, call.arguments() > 2 ? call.text(2) : ""); }},
        {"aten::floor_divide", [](LoweredCall& call) { divide(call, "floor"); }},
        {"aten::remainder", [](LoweredCall& call) { call.give(rest_of(call, true)); }},
        {"aten::fmod", [](LoweredCall& call) { call.give(rest_of(call, false)); }},
        {"aten::pow", lower_pow},
        {"aten::rsqrt",
         [](LoweredCall& call) {
             call.give(call.unary("Reciprocal", call.unary("Sqrt", call.tensor(0))));
         }},
        {"aten::clamp", [](LoweredCall& call) { clip(call, 1, 2); }},
        {"aten::hardtanh", [](LoweredCall& call) { clip(call, 1, 2); }},
        {"aten::clamp_min", [](LoweredCall& call) { clip(call, 1, 99); }},
        {"aten::clamp_max", [](LoweredCall& call) { clip(call, 99, 1); }},
        {"aten::mean", reduction("ReduceMean")},
        {"aten::sum", reduction("ReduceSum")},
        {"aten::amax", reduction("ReduceMax")},
        {"aten::amin", reduction("ReduceMin")},
        {"aten::prod", reduction("ReduceProd")},
        {"aten::max", extreme(true)},
        {"aten::min", extreme(false)},
        {"aten::any", any_of(false)},
        {"aten::all", any_of(true)},
        {"aten::argmax", place_of(true)},
        {"aten::argmin", place_of(false)},
        {"aten::lerp", lower_lerp},
        {"aten::addcmul", added_to("Mul")},
        {"aten::addcdiv", added_to("Div")},
        {"aten::trunc", [](LoweredCall& call) { call.give(truncated(call, call.tensor(0))); }},
        {"aten::frac",
         [](LoweredCall& call) {
             auto const x = call.tensor(0);
             call.give(call.binary("Sub", x, truncated(call, x)));
         }},
        {"aten::log1p",
         [](LoweredCall& call) {
             call.give(call.unary(
                 "Log", call.binary("Add", call.operand(0, Element::f32), call.graph().real(1))));
         }},
        {"aten::expm1",
         [](LoweredCall& call) {
             auto const found = call.unary("Exp", call.operand(0, Element::f32));
             call.give(call.binary("Sub", found, call.graph().real(1)));
         }},
        {"aten::exp2",
         [](LoweredCall& call) {
             call.give(call.binary("Pow", call.graph().real(2), call.operand(0, Element::f32)));
         }},
        {"aten::log2", times("Log", 1 / std::numbers::ln2)},
        {"aten::log10", times("Log", 1 / std::numbers::ln10)},
        {"aten::erfc",
         [](LoweredCall& call) {
             call.give(call.binary("Sub", call.graph().real(1),
                                   call.unary("Erf", call.operand(0, Element::f32))));
         }},
        {"aten::logit", lower_logit},
        {"aten::round",
         [](LoweredCall& call) {
             if (call.has(1) && call.number(1) != 0) {
                 call.refuse("it rounds to decimals, and only whole numbers are supported");
             }
             call.give(call.unary("Round", call.tensor(0)));
         }},
        {"aten::isnan", [](LoweredCall& call) { call.give(not_a_number(call, call.tensor(0))); }},
        {"aten::isinf",
         [](LoweredCall& call) {
             auto const infinite = call.graph().real(std::numeric_limits<double>::infinity());
             call.give(call.compare("Equal", call.unary("Abs", call.tensor(0)), infinite));
         }},
        {"aten::nan_to_num", lower_nan_to_num},
        {"aten::tril", triangle(false)},
        {"aten::triu", triangle(true)},
        {"aten::var", [](LoweredCall& call) { call.give(variance(call)); }},
        {"aten::std", [](LoweredCall& call) { call.give(call.unary("Sqrt", variance(call))); }},
        {"aten::var_mean",
         [](LoweredCall& call) {
             call.give(variance(call));
             call.give(mean_of(call));
         }},
        {"aten::std_mean",
         [](LoweredCall& call) {
             call.give(call.unary("Sqrt", variance(call)));
             call.give(mean_of(call));
         }},
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
        {"aten::logical_not", negation},
        {"aten::bitwise_not", negation},
    };
    for (auto const* const name : {"to", "_to_copy", "type_as", "clone", "contiguous", "detach",
                                   "alias", "lift_fresh", "positive"}) {
        table[std::string("aten::") + name] = lower_cast;
    }
    for (auto const& [name, kind] : {std::pair{"exp", "Exp"},
                                     {"log", "Log"},
                                     {"sqrt", "Sqrt"},
                                     {"abs", "Abs"},
                                     {"neg", "Neg"},
                                     {"erf", "Erf"},
                                     {"sin", "Sin"},
                                     {"cos", "Cos"},
                                     {"floor", "Floor"},
                                     {"ceil", "Ceil"},
                                     {"reciprocal", "Reciprocal"},
                                     {"sign", "Sign"},
                                     {"tan", "Tan"},
                                     {"asin", "Asin"},
                                     {"acos", "Acos"},
                                     {"atan", "Atan"},
                                     {"sinh", "Sinh"},
                                     {"cosh", "Cosh"}}) {
        table[std::string("aten::") + name] = simple(kind);
    }
    return table;
}

} // namespace lockstep::lower
