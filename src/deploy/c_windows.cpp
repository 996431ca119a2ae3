#include "base/text.hpp"
#include "deploy/c_statements.hpp"

namespace lockstep::deploy {

namespace {

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

} // namespace lockstep::deploy
