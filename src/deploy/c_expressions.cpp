#include "base/text.hpp"
#include "deploy/c_statements.hpp"
#include "deploy/c_values.hpp"

#include <limits>
#include <map>
#include <span>

namespace lockstep::deploy {

namespace {

constexpr auto max_float = std::numeric_limits<float>::max();

/// Operators that work element by element: of their operands {1}, {2}, {3}.
std::map<std::string, std::string> const& expressions() {
    static std::map<std::string, std::string> const table{
        {"Relu", "{1} < 0 ? 0 : {1}"},
        {"Sigmoid", "1 / (1 + expf(-{1}))"},
        {"Tanh", "tanhf({1})"},
        {"Exp", "expf({1})"},
        {"Log", "logf({1})"},
        {"Sqrt", "sqrtf({1})"},
        {"Erf", "erff({1})"},
        {"Sin", "sinf({1})"},
        {"Cos", "cosf({1})"},
        {"Floor", "floorf({1})"},
        {"Ceil", "ceilf({1})"},
        {"Round", "rintf({1})"},
        {"Tan", "tanf({1})"},
        {"Asin", "asinf({1})"},
        {"Acos", "acosf({1})"},
        {"Atan", "atanf({1})"},
        {"Sinh", "sinhf({1})"},
        {"Cosh", "coshf({1})"},
        {"Sign", "{1} > 0 ? 1 : {1} < 0 ? -1 : {1}"},
        {"Reciprocal", "1 / {1}"},
        {"Neg", "-{1}"},
        {"Abs", "{1} < 0 ? -{1} : {1}"},
        {"Softplus", "{1} > 20 ? {1} : log1pf(expf({1}))"},
        {"Not", "!{1}"},
        {"Add", "{1} + {2}"},
        {"Sub", "{1} - {2}"},
        {"Mul", "{1} * {2}"},
        {"Div", "{1} / {2}"},
        {"Normalize", "(float)(({1} - {2}) / {3})"},
        {"Pow", "powf({1}, {2})"},
        {"PRelu", "{1} < 0 ? {1} * {2} : {1}"},
        {"Min", "{1} < {2} ? {1} : {2}"},
        {"Max", "{1} > {2} ? {1} : {2}"},
        {"Equal", "{1} == {2}"},
        {"Less", "{1} < {2}"},
        {"LessOrEqual", "{1} <= {2}"},
        {"Greater", "{1} > {2}"},
        {"GreaterOrEqual", "{1} >= {2}"},
        {"And", "{1} && {2}"},
        {"Or", "{1} || {2}"},
        {"Where", "{1} ? {2} : {3}"},
        {"ExpandAs", "{1}"},
        {"Reshape", "{1}"},
        {"Identity", "{1}"},
    };
    return table;
}

} // namespace

std::string CStatements::element_by_element(Node const& node, std::string const& expression) const {
    auto const to = extents(node.output);
    std::vector<Operand> operands{whole(node.output)};
    auto const read = node.kind == "ExpandAs" ? 1 : node.inputs.size(); // the other is the batch's
    for (auto const id : std::span(node.inputs).first(read)) {
        operands.push_back(node.kind == "Reshape" ? Operand{pointer(id), strides_of(to)}
                                                  : repeated(id, to));
    }
    return loops(to, operands, concat("{0} = ", expression, ";"));
}

std::string CStatements::expression_of(Node const& node) const {
    auto const real = [&](char const* name) { return c_number(node.real(name), Element::f32); };
    if (node.kind == "Gelu") {
        return node.whole("tanh") != 0
                   ? "0.5f * {1} * (1 + tanhf(0.7978845608f * ({1} + 0.044715f * {1} * {1} * {1})))"
                   : "0.5f * {1} * (1 + erff({1} * 0.7071067812f))";
    }
    if (node.kind == "LeakyRelu") {
        return concat("{1} < 0 ? {1} * ", real("alpha"), " : {1}");
    }
    if (node.kind == "Elu") {
        return concat("{1} < 0 ? ", real("alpha"), " * expm1f({1}) : {1}");
    }
    if (node.kind == "Clip") {
        std::string text = "{1}";
        if (node.real("max") < max_float) {
            text = concat("{1} > ", real("max"), " ? ", real("max"), " : ", text);
        }
        return node.real("min") > -max_float
                   ? concat("{1} < ", real("min"), " ? ", real("min"), " : ", text)
                   : text;
    }
    if (node.kind == "Mod") {
        return graph_[node.output].element == Element::f32 ? "fmodf({1}, {2})" : "{1} % {2}";
    }
    if (node.kind == "Cast") {
        auto const to = graph_[node.output].element;
        return to == Element::boolean ? "{1} != 0" : concat("(", c_type(to), "){1}");
    }
    auto const found = expressions().find(node.kind);
    return found == expressions().end() ? std::string() : found->second;
}

} // namespace lockstep::deploy
