#include "deploy/c_statements.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
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
        {"Reciprocal", "1 / {1}"},
        {"Neg", "-{1}"},
        {"Abs", "{1} < 0 ? -{1} : {1}"},
        {"Softplus", "{1} > 20 ? {1} : log1pf(expf({1}))"},
        {"Not", "!{1}"},
        {"Add", "{1} + {2}"},
        {"Sub", "{1} - {2}"},
        {"Mul", "{1} * {2}"},
        {"Div", "{1} / {2}"},
        {"Pow", "powf({1}, {2})"},
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

std::string list_of(std::vector<std::int64_t> const& values) {
    std::vector<std::string> texts;
    for (auto const value : values) {
        texts.push_back(std::to_string(value));
    }
    return joined(texts, ", ");
}

/// `values` after so many ones, as three.
std::vector<std::int64_t> three_of(std::vector<std::int64_t> values, std::int64_t filling) {
    values.insert(values.begin(), 3 - values.size(), filling);
    return values;
}

/// Elements before, in and behind an axis.
struct AroundAxis {
    std::int64_t before = 1;
    std::int64_t count = 1;
    std::int64_t behind = 1;
};
AroundAxis around(std::vector<std::int64_t> const& extents, std::int64_t axis) {
    AroundAxis found;
    for (std::size_t i = 0; i < extents.size(); ++i) {
        auto const at = static_cast<std::int64_t>(i);
        (at < axis ? found.before : at == axis ? found.count : found.behind) *= extents[i];
    }
    return found;
}

/// The extents behind batch and channels, three of them.
auto space(std::vector<std::int64_t> const& all) {
    return three_of({all.begin() + 2, all.end()}, 1);
}

/// What is added before the first element of each of three axes.
auto leading_pads(Node const& node) {
    auto const pads = node.wholes("pads");
    return three_of({pads.begin(), pads.begin() + static_cast<long>(pads.size() / 2)}, 0);
}

} // namespace

std::string c_type(Element element) {
    return element == Element::f32   ? "float"
           : element == Element::i64 ? "int64_t"
           : element == Element::i8  ? "int8_t"
                                     : "uint8_t";
}

std::string c_number(double value, Element element) {
    if (element != Element::f32) {
        auto const whole = static_cast<std::int64_t>(value);
        return whole == std::numeric_limits<std::int64_t>::min() ? "INT64_MIN"
               : element == Element::i64                         ? concat("INT64_C(", whole, ")")
                                                                 : std::to_string(whole);
    }
    auto const narrow = static_cast<float>(value);
    if (std::isnan(narrow)) {
        return "NAN";
    }
    if (std::isinf(narrow)) {
        return narrow < 0 ? "-INFINITY" : "INFINITY";
    }
    std::array<char, 32> text{};
    auto const end = std::to_chars(text.data(), text.data() + text.size(), narrow).ptr;
    std::string made(text.data(), end); // the shortest that is read back as the same number
    if (made.find_first_of(".e") == std::string::npos) {
        made += ".0";
    }
    return made + "f";
}

std::string CStatements::pointer(TensorId id) const {
    auto const root = plan_.storage(id);
    auto const& inputs = graph_.inputs();
    if (auto const at = std::ranges::find(inputs, root); at != inputs.end()) {
        return concat("input", at - inputs.begin());
    }
    if (root == graph_.output()) {
        return "output";
    }
    if (graph_[root].constant) {
        return concat("c", root);
    }
    auto const* const array = graph_[root].element == Element::f32   ? "reals"
                              : graph_[root].element == Element::i64 ? "wholes"
                              : graph_[root].element == Element::u8  ? "bytes"
                                                                     : "flags";
    return concat("(", array, " + ", plan_.place(root).value_or(0), ")");
}

Operand CStatements::whole(TensorId id) const {
    return {pointer(id), strides_of(extents(id))};
}

Operand CStatements::repeated(TensorId id, std::vector<std::int64_t> const& to) const {
    return {pointer(id), repeated_strides(graph_[id].shape, to)};
}

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
    if (node.kind == "Cast") {
        auto const to = graph_[node.output].element;
        return to == Element::boolean ? "{1} != 0" : concat("(", c_type(to), "){1}");
    }
    auto const found = expressions().find(node.kind);
    return found == expressions().end() ? std::string() : found->second;
}

/// The entries of a struct convolution.
std::string CStatements::convolution_form(Node const& node) const {
    auto const in = extents(node.inputs[0]);
    auto const out = extents(node.output);
    return concat(in[1], ", ", out[1], ", ", node.whole("group"), ", {", list_of(space(in)), "}, {",
                  list_of(space(out)), "}, {", list_of(three_of(node.wholes("kernel_shape"), 1)),
                  "}, {", list_of(three_of(node.wholes("strides"), 1)), "}, {",
                  list_of(leading_pads(node)), "}, {",
                  list_of(three_of(node.wholes("dilations"), 1)), "}");
}

std::string CStatements::convolution(Node const& node) {
    auto const* const helper = node.kind == "Conv" ? "convolve" : "convolve_transposed";
    helpers_.insert("convolution");
    helpers_.insert(helper);
    auto const in = extents(node.inputs[0]);
    return concat("    {\n        static const struct convolution form = {", convolution_form(node),
                  "};\n        for (long n = 0; n < ", in[0], "; ++n)\n            ", helper,
                  "(&form, ", pointer(node.inputs[0]), " + n * ",
                  elements(graph_[node.inputs[0]].shape) / in[0], ", ", pointer(node.inputs[1]),
                  ", ", node.inputs.size() > 2 ? pointer(node.inputs[2]) : std::string("0"), ", ",
                  pointer(node.output), " + n * ", elements(graph_[node.output].shape) / in[0],
                  ");\n    }\n");
}

std::string CStatements::pool(Node const& node) {
    bool const bytes = graph_[node.output].element == Element::u8;
    auto const* const helper = bytes ? "pool_bytes" : "pool";
    helpers_.insert(helper);
    auto const in = extents(node.inputs[0]);
    auto const out = extents(node.output);
    auto const first = leading_pads(node);
    auto const dilations = node.attributes.contains("dilations") ? node.wholes("dilations")
                                                                 : std::vector<std::int64_t>{1};
    bool const counts_padding =
        node.attributes.contains("count_include_pad") && node.whole("count_include_pad") != 0;
    int const kind = node.kind == "MaxPool" ? 0 : counts_padding ? 2 : 1;
    return concat("    {\n        static const struct ", bytes ? "byte_pooling" : "pooling",
                  " form = {", in[0] * in[1], ", ", kind, ", {", list_of(space(in)), "}, {",
                  list_of(space(out)), "}, {", list_of(three_of(node.wholes("kernel_shape"), 1)),
                  "}, {", list_of(three_of(node.wholes("strides"), 1)), "}, {", list_of(first),
                  "}, {", list_of(three_of(dilations, 1)), "}};\n        ", helper, "(&form, ",
                  pointer(node.inputs[0]), ", ", pointer(node.output), ");\n    }\n");
}

std::string CStatements::norm(Node const& node) const {
    auto const to = extents(node.output);
    std::vector<std::int64_t> by_channel(to.size(), 0);
    by_channel[1] = 1;
    std::vector<Operand> operands{whole(node.output), whole(node.inputs[0])};
    for (std::size_t i = 1; i < 5; ++i) {
        operands.push_back({pointer(node.inputs[i]), by_channel});
    }
    return loops(to, operands,
                 concat("{0} = ({1} - {4}) / sqrtf({5} + ",
                        c_number(node.real("epsilon"), Element::f32), ") * {2} + {3};"));
}

/// Gemm and MatMul: rows of a times a matrix, for each pair of matrices.
std::string CStatements::product(Node const& node) {
    helpers_.insert("multiply");
    auto const left = extents(node.inputs[0]);
    auto const right = extents(node.inputs[1]);
    auto out = extents(node.output);
    auto const rows = left[left.size() - 2];
    auto const inner = left.back();
    auto const columns = right.back();
    auto const bias = node.inputs.size() > 2 ? pointer(node.inputs[2]) : std::string("0");
    auto const& second = graph_[node.inputs[1]].shape;
    auto const end = concat(inner, ", ", columns, ", ");
    if (second.size() == 2) { // one matrix for all rows
        auto const all = elements(graph_[node.output].shape) / columns;
        return concat("    multiply(", all, ", ", end, pointer(node.inputs[0]), ", ",
                      pointer(node.inputs[1]), ", ", bias, ", ", pointer(node.output), ");\n");
    }
    auto const matrices = [&](TensorId id) {
        auto const& shape = graph_[id].shape;
        return Shape(shape.begin(), shape.end() - 2);
    };
    out.resize(out.size() - 2);
    auto const operand = [&](TensorId id) {
        auto strides = repeated_strides(matrices(id), out);
        auto const own = extents(id);
        for (auto& stride : strides) {
            stride *= own[own.size() - 1] * own[own.size() - 2];
        }
        return Operand{pointer(id), strides};
    };
    return loops(out, {operand(node.output), operand(node.inputs[0]), operand(node.inputs[1])},
                 concat("multiply(", rows, ", ", end, "&{1}, &{2}, ", bias, ", &{0});"));
}

std::string CStatements::along_axis(Node const& node) {
    auto const [before, count, behind] = around(extents(node.output), node.whole("axis"));
    auto const* const kind = node.kind == "Softmax"                        ? "softmax"
                             : node.kind == "LogSoftmax"                   ? "log_softmax"
                             : graph_[node.output].element == Element::f32 ? "sum_up"
                                                                           : "sum_up_wholes";
    helpers_.insert(kind);
    return concat("    ", kind, "(", before, ", ", count, ", ", behind, ", ",
                  pointer(node.inputs[0]), ", ", pointer(node.output), ");\n");
}

std::string CStatements::layer_norm(Node const& node) {
    helpers_.insert("layer_norm");
    auto const width = elements(graph_[node.inputs[1]].shape);
    return concat("    layer_norm(", elements(graph_[node.output].shape) / width, ", ", width, ", ",
                  c_number(node.real("epsilon"), Element::f32), ", ", pointer(node.inputs[0]), ", ",
                  pointer(node.inputs[1]), ", ",
                  node.inputs.size() > 2 ? pointer(node.inputs[2]) : std::string("0"), ", ",
                  pointer(node.output), ");\n");
}

std::string CStatements::reduction(Node const& node) const {
    auto const from = extents(node.inputs[0]);
    auto kept = from;
    std::int64_t joined_count = 1;
    for (auto const axis : node.wholes("axes")) {
        joined_count *= kept[static_cast<std::size_t>(axis)];
        kept[static_cast<std::size_t>(axis)] = 1;
    }
    auto const count = elements(graph_[node.output].shape);
    auto into = strides_of(kept);
    for (auto const axis : node.wholes("axes")) {
        into[static_cast<std::size_t>(axis)] = 0;
    }
    bool const largest = node.kind == "ReduceMax";
    Operand const all{pointer(node.output), {1}};
    auto text = loops({count}, {all}, largest ? "{0} = -INFINITY;" : "{0} = 0;");
    text += loops(from, {{pointer(node.output), into}, whole(node.inputs[0])},
                  largest ? "{0} = {1} > {0} ? {1} : {0};" : "{0} += {1};");
    if (node.kind == "ReduceMean") {
        text += loops({count}, {all}, concat("{0} /= ", joined_count, ";"));
    }
    return text;
}

std::string CStatements::transpose(Node const& node) const {
    auto const from = strides_of(extents(node.inputs[0]));
    std::vector<std::int64_t> strides;
    for (auto const axis : node.wholes("perm")) {
        strides.push_back(from[static_cast<std::size_t>(axis)]);
    }
    return loops(extents(node.output), {whole(node.output), {pointer(node.inputs[0]), strides}},
                 "{0} = {1};");
}

std::string CStatements::slice(Node const& node) const {
    auto operand = whole(node.inputs[0]);
    for (std::size_t i = 0; i < node.wholes("axes").size(); ++i) {
        auto& stride = operand.strides[static_cast<std::size_t>(node.wholes("axes")[i])];
        operand.offset += node.wholes("starts")[i] * stride;
        stride *= node.wholes("steps")[i];
    }
    return loops(extents(node.output), {whole(node.output), operand}, "{0} = {1};");
}

std::string CStatements::join(Node const& node) const {
    auto const axis = static_cast<std::size_t>(node.whole("axis"));
    auto into = whole(node.output);
    std::string text;
    for (auto const id : node.inputs) {
        text += loops(extents(id), {into, whole(id)}, "{0} = {1};");
        into.offset += extents(id)[axis] * into.strides[axis];
    }
    return text;
}

std::string CStatements::gather(Node const& node) const {
    auto const [before, count, behind] = around(extents(node.inputs[0]), node.whole("axis"));
    auto const places = elements(graph_[node.inputs[1]].shape);
    return concat("    for (long i = 0; i < ", before, "; ++i)\n        for (long j = 0; j < ",
                  places, "; ++j) {\n            const int64_t at = ", pointer(node.inputs[1]),
                  "[j];\n            if (at < 0 || at >= ", count,
                  ")\n                return 1;\n            memcpy(", pointer(node.output),
                  " + (i * ", places, " + j) * ", behind, ", ", pointer(node.inputs[0]), " + (i * ",
                  count, " + at) * ", behind, ", ", behind, " * sizeof *", pointer(node.output),
                  ");\n        }\n");
}

std::string CStatements::pad(Node const& node) const {
    auto const count = elements(graph_[node.output].shape);
    auto into = whole(node.output);
    for (std::size_t axis = 0; axis < into.strides.size(); ++axis) {
        into.offset += node.wholes("pads")[axis] * into.strides[axis];
    }
    return loops({count}, {{pointer(node.output), {1}}},
                 concat("{0} = ", c_number(node.real("value"), Element::f32), ";")) +
           loops(extents(node.inputs[0]), {into, whole(node.inputs[0])}, "{0} = {1};");
}

/// Each entry of the input is copied into the places that it stands for.
std::string CStatements::resize(Node const& node) const {
    auto const from = extents(node.inputs[0]);
    auto const to = strides_of(extents(node.output));
    auto const& factors = node.wholes("factors");
    auto const given = strides_of(from);
    std::vector<std::int64_t> all;
    Operand into{pointer(node.output), {}};
    Operand out_of{pointer(node.inputs[0]), {}};
    auto const loop = [&](std::int64_t extent, std::int64_t in, std::int64_t out) {
        all.push_back(extent);
        out_of.strides.push_back(in);
        into.strides.push_back(out);
    };
    auto const first = from.size() - factors.size();
    for (std::size_t axis = 0; axis < from.size(); ++axis) {
        auto const factor = axis < first ? 1 : factors[axis - first];
        loop(from[axis], given[axis], to[axis] * factor);
        loop(factor, 0, to[axis]);
    }
    return loops(all, {into, out_of}, "{0} = {1};");
}

std::string CStatements::of(Node const& node) {
    if (node.kind == "Reshape" && plan_.storage(node.output) != node.output) {
        return {}; // it stays where it is
    }
    if (auto const expression = expression_of(node); !expression.empty()) {
        return element_by_element(node, expression);
    }
    using Member = std::string (CStatements::*)(Node const&);
    using Reader = std::string (CStatements::*)(Node const&) const;
    static std::map<std::string, Member> const callers{
        {"Conv", &CStatements::convolution},
        {"ConvTranspose", &CStatements::convolution},
        {"MaxPool", &CStatements::pool},
        {"AveragePool", &CStatements::pool},
        {"QuantizeLinear", &CStatements::quantiser},
        {"QuantizedConv", &CStatements::integer_layer},
        {"QuantizedGemm", &CStatements::integer_layer},
        {"Gemm", &CStatements::product},
        {"MatMul", &CStatements::product},
        {"Softmax", &CStatements::along_axis},
        {"LogSoftmax", &CStatements::along_axis},
        {"CumSum", &CStatements::along_axis},
        {"LayerNormalization", &CStatements::layer_norm}};
    static std::map<std::string, Reader> const others{{"BatchNormalization", &CStatements::norm},
                                                      {"ReduceMean", &CStatements::reduction},
                                                      {"ReduceSum", &CStatements::reduction},
                                                      {"ReduceMax", &CStatements::reduction},
                                                      {"Transpose", &CStatements::transpose},
                                                      {"Slice", &CStatements::slice},
                                                      {"Concat", &CStatements::join},
                                                      {"Gather", &CStatements::gather},
                                                      {"Pad", &CStatements::pad},
                                                      {"Resize", &CStatements::resize}};
    if (auto const found = callers.find(node.kind); found != callers.end()) {
        return (this->*found->second)(node);
    }
    auto const found = others.find(node.kind);
    if (found == others.end()) {
        throw Error(ExitCode::usage, {"the model cannot be exported to C",
                                      concat("the C export does not support operator ", node.kind),
                                      "Use --format onnx"});
    }
    return (this->*found->second)(node);
}

} // namespace lockstep::deploy
