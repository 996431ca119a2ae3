#include "base/text.hpp"
#include "deploy/c_statements.hpp"
#include "deploy/c_values.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>

namespace lockstep::deploy {

namespace {

/// Products of a byte and a weight that 32 bits hold in sum, whatever their values.
constexpr std::int64_t max_products = std::int64_t{0x7FFFFFFF} / (255 * 127);

/// The float that PyTorch multiplies by, where the scale is a float that it divides by in double.
std::string inverse_of(double scale) {
    return c_number(1 / scale, Element::f32);
}

} // namespace

std::string CStatements::quantiser(Node const& node) {
    helpers_.insert("integers");
    return loops({elements(graph_[node.output].shape)},
                 {{pointer(node.output), {1}}, {pointer(node.inputs[0]), {1}}},
                 concat("{0} = to_byte({1}, ", inverse_of(node.real("scale")), ", ",
                        node.whole("zero"), ");"));
}

/// A fully connected layer is a convolution over one place of each row.
std::string CStatements::integer_layer(Node const& node) {
    helpers_.insert("integers");
    bool const convolves = node.kind == "QuantizedConv";
    bool const bytes = graph_[node.output].element == Element::u8;
    auto const weights = extents(node.inputs[1]);
    auto const products = elements(graph_[node.inputs[1]].shape) / weights[0];
    if (products > max_products) {
        throw Error(ExitCode::usage,
                    {concat("a layer sums ", count_text(products), " products"),
                     concat("32-bit sums of the C export can hold at most ",
                            count_text(max_products), " products"),
                     "Use --format onnx, or export the model as it was before quantisation"});
    }
    patch_ = std::max(patch_, products);
    auto const rows =
        convolves ? extents(node.inputs[0])[0] : elements(graph_[node.output].shape) / weights[0];
    auto const form =
        convolves ? convolution_form(node) : concat(weights[1], ", ", weights[0], ", 1, ONE_PLACE");
    return concat(
        "    {\n        static const struct integer_layer form = {{", form, "}, ",
        node.whole("zero"), ", ", c_number(node.real("scale"), Element::f32), ", ",
        bytes ? concat(inverse_of(node.real("out_scale")), ", ", node.whole("out_zero")) : "0, 0",
        "};\n        for (long n = 0; n < ", rows, "; ++n)\n            integer_layer(&form, ",
        pointer(node.inputs[0]), " + n * ", elements(graph_[node.inputs[0]].shape) / rows, ", ",
        pointer(node.inputs[1]), ", ", pointer(node.inputs[2]), ", ", pointer(node.inputs[3]), ", ",
        bytes ? "0, " : "", pointer(node.output), " + n * ",
        elements(graph_[node.output].shape) / rows, bytes ? "" : ", 0", ");\n    }\n");
}

} // namespace lockstep::deploy
