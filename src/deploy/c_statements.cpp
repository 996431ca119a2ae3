#include "deploy/c_statements.hpp"

#include "base/text.hpp"
#include "deploy/c_values.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <map>

namespace lockstep::deploy {

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
    struct Kind {
        char const* first;
        char const* first_whole;
        char const* next;
    };
    static std::map<std::string, Kind> const kinds{
        {"ReduceMax", {"-INFINITY", "INT64_MIN", "{0} = {1} > {0} ? {1} : {0};"}},
        {"ReduceMin", {"INFINITY", "INT64_MAX", "{0} = {1} < {0} ? {1} : {0};"}},
        {"ReduceProd", {"1", "1", "{0} *= {1};"}},
        {"ReduceSum", {"0", "0", "{0} += {1};"}},
        {"ReduceMean", {"0", "0", "{0} += {1};"}}};
    auto const& kind = kinds.at(node.kind);
    bool const reals = graph_[node.output].element == Element::f32;
    Operand const all{pointer(node.output), {1}};
    auto text = loops({count}, {all}, concat("{0} = ", reals ? kind.first : kind.first_whole, ";"));
    text += loops(from, {{pointer(node.output), into}, whole(node.inputs[0])}, kind.next);
    if (node.kind == "ReduceMean") {
        text += loops({count}, {all}, concat("{0} /= ", joined_count, ";"));
    }
    return text;
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
        {"LayerNormalization", &CStatements::layer_norm},
        {"GridSample", &CStatements::grid_sample}};
    static std::map<std::string, Reader> const others{
        {"BatchNormalization", &CStatements::norm},
        {"ReduceMean", &CStatements::reduction},
        {"ReduceSum", &CStatements::reduction},
        {"ReduceMax", &CStatements::reduction},
        {"ReduceMin", &CStatements::reduction},
        {"ReduceProd", &CStatements::reduction},
        {"ArgMax", &CStatements::arg_max},
        {"GatherElements", &CStatements::gather_elements},
        {"ScatterElements", &CStatements::scatter_elements},
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
