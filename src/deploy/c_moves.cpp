#include "base/text.hpp"
#include "deploy/c_statements.hpp"
#include "deploy/c_values.hpp"

namespace lockstep::deploy {

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

namespace {

/// A statement on the element at {2} along an axis of so many, `behind` apart; {1} is the first.
std::string at_computed_place(std::string const& statement, std::int64_t count,
                              std::int64_t behind) {
    auto const text = concat("{ const int64_t at = {2}; if (at < 0 || at >= ", count,
                             ") return 1; ", statement, " }");
    auto const element = concat("(&{1})[at * ", behind, "]");
    auto const mark = text.find("{at}");
    return text.substr(0, mark) + element + text.substr(mark + 4);
}

} // namespace

/// Without the axis along which places are computed.
Operand CStatements::along_others(TensorId id, std::int64_t axis) const {
    auto operand = whole(id);
    operand.strides[static_cast<std::size_t>(axis)] = 0;
    return operand;
}

std::string CStatements::gather_elements(Node const& node) const {
    auto const axis = node.whole("axis");
    auto const [before, count, behind] = around(extents(node.inputs[0]), axis);
    return loops(extents(node.output),
                 {whole(node.output), along_others(node.inputs[0], axis), whole(node.inputs[1])},
                 at_computed_place("{0} = {at};", count, behind));
}

std::string CStatements::scatter_elements(Node const& node) const {
    auto const axis = node.whole("axis");
    auto const [before, count, behind] = around(extents(node.output), axis);
    auto const copied =
        loops(extents(node.output), {whole(node.output), whole(node.inputs[0])}, "{0} = {1};");
    return copied +
           loops(extents(node.inputs[1]),
                 {whole(node.inputs[2]), along_others(node.output, axis), whole(node.inputs[1])},
                 at_computed_place(node.whole("adds") != 0 ? "{at} += {0};" : "{at} = {0};", count,
                                   behind));
}

std::string CStatements::arg_max(Node const& node) const {
    auto const [before, count, behind] = around(extents(node.inputs[0]), node.whole("axis"));
    auto const from = pointer(node.inputs[0]);
    auto const into = pointer(node.output);
    return concat(
        "    for (long i = 0; i < ", before, "; ++i)\n        for (long j = 0; j < ", behind,
        "; ++j) {\n            const float *x = ", from, " + i * ", count * behind,
        " + j;\n            int64_t best = 0;\n            for (int64_t k = 1; k < ", count,
        "; ++k)\n                best = x[k * ", behind, "] > x[best * ", behind,
        "] ? k : best;\n            ", into, "[i * ", behind, " + j] = best;\n        }\n");
}

std::string CStatements::grid_sample(Node const& node) {
    helpers_.insert("sample_grid");
    auto const in = extents(node.inputs[0]);
    auto const to = extents(node.output);
    return concat("    sample_grid(", to[0], ", ", in[1], ", ", in[2], ", ", in[3], ", ",
                  to[2] * to[3], ", ", node.whole("mode"), ", ", node.whole("padding"), ", ",
                  node.whole("align_corners"), ", ", pointer(node.inputs[0]), ", ",
                  pointer(node.inputs[1]), ", ", pointer(node.output), ");\n");
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

} // namespace lockstep::deploy
