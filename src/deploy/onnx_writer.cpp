#include "deploy/onnx_writer.hpp"

#include "base/text.hpp"
#include "deploy/wire.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>

namespace lockstep::deploy {

namespace {

// Numbers of fields and types are those of onnx.proto.
constexpr std::int64_t ir_version = 8;
constexpr std::int64_t opset = 17;
constexpr std::uint64_t max_bytes = std::numeric_limits<std::int32_t>::max();

std::int64_t type_of(Element element) {
    switch (element) {
    case Element::f32:
        return 1;
    case Element::u8:
        return 2;
    case Element::i8:
        return 3;
    case Element::i64:
        return 7;
    case Element::f64:
        return 11;
    case Element::boolean:
        break;
    }
    return 9;
}

Message value_info(Tensor const& tensor, std::string const& name) {
    Message shape;
    for (auto const& extent : tensor.shape) {
        Message dimension;
        if (!extent.batch) {
            dimension.number(1, extent.count);
        } else if (extent.count == 1) {
            dimension.text(2, "batch");
        }
        shape.message(1, dimension);
    }
    Message type;
    type.number(1, type_of(tensor.element)).message(2, shape);
    return Message().text(1, name).message(2, Message().message(1, type));
}

Message attribute(std::string const& name, Attribute const& value) {
    Message made;
    made.text(1, name);
    if (auto const* const whole = std::get_if<std::int64_t>(&value)) {
        made.number(3, *whole).number(20, 2);
    } else if (auto const* const real = std::get_if<double>(&value)) {
        made.real(2, static_cast<float>(*real)).number(20, 1);
    } else {
        for (auto const item : std::get<std::vector<std::int64_t>>(value)) {
            made.number(8, item);
        }
        made.number(20, 7);
    }
    return made;
}

/// Attributes of a node.
struct Form {
    Attributes numbers{};
    std::map<std::string, std::string> texts{};
};

/// GraphProto, node by node; what ONNX takes as tensors becomes constants.
class OnnxGraph {
  public:
    explicit OnnxGraph(Graph const& graph) : graph_(graph), written_(graph.tensors().size()) {}

    Message made() {
        for (auto const& node : graph_.nodes()) {
            write(node);
        }
        Message whole;
        for (auto const& node : nodes_) {
            whole.message(1, node);
        }
        whole.text(2, "lockstep");
        for (auto const& constant : constants_) {
            whole.message(5, constant);
        }
        for (auto const id : graph_.inputs()) {
            whole.message(11, value_info(graph_[id], name(id)));
        }
        whole.message(12, value_info(graph_[graph_.output()], name(graph_.output())));
        return whole;
    }

  private:
    std::string const& name(TensorId id) const { return graph_[id].name; }

    void put_constant(std::string const& name, Element element,
                      std::vector<std::int64_t> const& extents, std::string_view bytes) {
        Message tensor;
        for (auto const extent : extents) {
            tensor.number(1, extent);
        }
        tensor.number(2, type_of(element)).text(8, name).text(9, bytes);
        constants_.push_back(std::move(tensor));
    }

    std::string wholes(std::vector<std::int64_t> const& values) {
        auto made = concat("/k", constants_.size());
        put_constant(
            made, Element::i64, {static_cast<std::int64_t>(values.size())},
            {reinterpret_cast<char const*>(values.data()), values.size() * sizeof(std::int64_t)});
        return made;
    }
    std::string real(double value) {
        auto made = concat("/k", constants_.size());
        auto const narrow = static_cast<float>(value);
        put_constant(made, Element::f32, {},
                     {reinterpret_cast<char const*>(&narrow), sizeof narrow});
        return made;
    }

    std::string input(Node const& node, std::size_t at) {
        auto const id = node.inputs[at];
        auto const& tensor = graph_[id];
        if (tensor.constant && !written_[id]) {
            written_[id] = true;
            put_constant(
                tensor.name, tensor.element, extents_of(tensor.shape),
                {reinterpret_cast<char const*>(tensor.values.data()), tensor.values.size()});
        }
        return tensor.name;
    }

    void put(std::string const& kind, std::vector<std::string> const& inputs,
             std::string const& output, Form const& form) {
        Message node;
        for (auto const& each : inputs) {
            node.text(1, each);
        }
        node.text(2, output).text(3, concat("/n", nodes_.size())).text(4, kind);
        for (auto const& [key, value] : form.numbers) {
            node.message(5, attribute(key, value));
        }
        for (auto const& [key, value] : form.texts) {
            node.message(5, Message().text(1, key).text(4, value).number(20, 3));
        }
        nodes_.push_back(std::move(node));
    }
    std::string intermediate(std::string const& kind, std::vector<std::string> const& inputs,
                             Form const& form = {}) {
        auto made = concat("/m", nodes_.size());
        put(kind, inputs, made, form);
        return made;
    }

    void write(Node const& node) {
        using Write = void (OnnxGraph::*)(Node const&);
        static std::map<std::string, Write> const own{
            {"Gelu", &OnnxGraph::write_gelu},
            {"ExpandAs", &OnnxGraph::write_expand},
            {"Reshape", &OnnxGraph::write_reshape},
            {"Slice", &OnnxGraph::write_slice},
            {"Cast", &OnnxGraph::write_cast},
            {"Normalize", &OnnxGraph::write_normalize},
            {"Clip", &OnnxGraph::write_clip},
            {"Resize", &OnnxGraph::write_resize},
            {"CumSum", &OnnxGraph::write_cumsum},
            {"Pad", &OnnxGraph::write_pad},
            {"ScatterElements", &OnnxGraph::write_scatter},
            {"GridSample", &OnnxGraph::write_grid_sample},
            {"ReduceSum", &OnnxGraph::write_sum},
            {"QuantizeLinear", &OnnxGraph::write_quantise},
            {"QuantizedConv", &OnnxGraph::write_integer_layer},
            {"QuantizedGemm", &OnnxGraph::write_integer_layer}};
        if (auto const found = own.find(node.kind); found != own.end()) {
            (this->*found->second)(node);
            return;
        }
        std::vector<std::string> inputs;
        for (std::size_t at = 0; at < node.inputs.size(); ++at) {
            inputs.push_back(input(node, at));
        }
        put(node.kind, inputs, name(node.output), {node.attributes});
    }

    void write_gelu(Node const& node) {
        auto const x = input(node, 0);
        std::string inner;
        if (node.whole("tanh") != 0) {
            auto const cube = intermediate("Mul", {intermediate("Mul", {x, x}), x});
            auto const sum = intermediate("Add", {x, intermediate("Mul", {cube, real(0.044715)})});
            inner = intermediate(
                "Tanh", {intermediate("Mul", {sum, real(std::sqrt(2 / std::numbers::pi))})});
        } else {
            inner = intermediate("Erf", {intermediate("Mul", {x, real(std::sqrt(0.5))})});
        }
        auto const half = intermediate("Mul", {x, real(0.5)});
        put("Mul", {half, intermediate("Add", {inner, real(1)})}, name(node.output), {});
    }
    void write_expand(Node const& node) {
        auto const axis = node.whole("batch");
        auto const batch =
            intermediate("Shape", {input(node, 1)}, {{{"start", axis}, {"end", axis + 1}}});
        std::vector<std::string> extents;
        for (auto const& extent : graph_[node.output].shape) {
            extents.push_back(extent.batch ? batch : wholes({extent.count}));
        }
        auto const shape = intermediate("Concat", extents, {{{"axis", std::int64_t{0}}}});
        put("Expand", {input(node, 0), shape}, name(node.output), {});
    }
    void write_reshape(Node const& node) {
        put("Reshape", {input(node, 0), wholes(node.wholes("shape"))}, name(node.output), {});
    }
    void write_slice(Node const& node) {
        put("Slice",
            {input(node, 0), wholes(node.wholes("starts")), wholes(node.wholes("ends")),
             wholes(node.wholes("axes")), wholes(node.wholes("steps"))},
            name(node.output), {});
    }
    void write_cast(Node const& node) {
        put("Cast", {input(node, 0)}, name(node.output),
            {{{"to", type_of(graph_[node.output].element)}}});
    }
    void write_normalize(Node const& node) {
        auto const centred = intermediate("Sub", {input(node, 0), input(node, 1)});
        put("Cast", {intermediate("Div", {centred, input(node, 2)})}, name(node.output),
            {{{"to", type_of(graph_[node.output].element)}}});
    }
    void write_clip(Node const& node) {
        put("Clip", {input(node, 0), real(node.real("min")), real(node.real("max"))},
            name(node.output), {});
    }
    void write_resize(Node const& node) {
        std::vector<float> scales{1, 1};
        for (auto const factor : node.wholes("factors")) {
            scales.push_back(static_cast<float>(factor));
        }
        auto const factors = concat("/k", constants_.size());
        put_constant(factors, Element::f32, {static_cast<std::int64_t>(scales.size())},
                     {reinterpret_cast<char const*>(scales.data()), scales.size() * sizeof(float)});
        put("Resize", {input(node, 0), "", factors}, name(node.output),
            {{},
             {{"coordinate_transformation_mode", "asymmetric"},
              {"mode", "nearest"},
              {"nearest_mode", "floor"}}});
    }
    void write_cumsum(Node const& node) {
        put("CumSum", {input(node, 0), wholes({node.whole("axis")})}, name(node.output), {});
    }
    void write_pad(Node const& node) {
        put("Pad", {input(node, 0), wholes(node.wholes("pads")), real(node.real("value"))},
            name(node.output), {});
    }
    void write_scatter(Node const& node) {
        put("ScatterElements", {input(node, 0), input(node, 1), input(node, 2)}, name(node.output),
            {{{"axis", node.whole("axis")}},
             {{"reduction", node.whole("adds") != 0 ? "add" : "none"}}});
    }
    void write_grid_sample(Node const& node) {
        static constexpr std::array<char const*, 3> paddings{"zeros", "border", "reflection"};
        put("GridSample", {input(node, 0), input(node, 1)}, name(node.output),
            {{{"align_corners", node.whole("align_corners")}},
             {{"mode", node.whole("mode") == 0 ? "bilinear" : "nearest"},
              {"padding_mode", paddings.at(static_cast<std::size_t>(node.whole("padding")))}}});
    }
    void write_sum(Node const& node) {
        put("ReduceSum", {input(node, 0), wholes(node.wholes("axes"))}, name(node.output),
            {{{"keepdims", node.attributes.at("keepdims")}}});
    }

    std::string byte(std::int64_t value) {
        auto made = concat("/k", constants_.size());
        char const letter = static_cast<char>(static_cast<std::uint8_t>(value));
        put_constant(made, Element::u8, {}, {&letter, 1});
        return made;
    }
    void put_bytes(std::string const& values, Node const& node, std::string const& prefix) {
        put("QuantizeLinear",
            {values, real(node.real(prefix + "scale")), byte(node.whole(prefix + "zero"))},
            name(node.output), {});
    }
    void write_quantise(Node const& node) { put_bytes(input(node, 0), node, ""); }

    /// The weight of an int8 layer as uint8 around 128: products of uint8 and int8 are added in 16
    /// bits by onnxruntime on x86-64 without VNNI, and saturate; those of two uint8 are not.
    std::string weight_in_bytes(Node const& node) {
        auto const& weight = graph_[node.inputs[1]];
        auto const extents = extents_of(weight.shape);
        std::string bytes(weight.values.size(), '\0');
        std::ranges::transform(weight.values, bytes.begin(), [](std::byte value) {
            return static_cast<char>(value ^ std::byte{0x80}); // the sum with 128
        });
        auto const outputs = extents.front();
        auto const values = concat("/k", constants_.size());
        put_constant(values, Element::u8, extents, bytes);
        auto const middle = concat("/k", constants_.size());
        put_constant(middle, Element::u8, {outputs},
                     std::string(static_cast<std::size_t>(outputs), '\x80'));
        return intermediate("DequantizeLinear", {values, input(node, 2), middle},
                            {{{"axis", std::int64_t{0}}}});
    }

    /// In real values between DequantizeLinear and QuantizeLinear, where runtimes look for layers
    /// that they can compute in whole numbers.
    void write_integer_layer(Node const& node) {
        auto const values =
            intermediate("DequantizeLinear",
                         {input(node, 0), real(node.real("scale")), byte(node.whole("zero"))});
        auto const weights = weight_in_bytes(node);
        bool const bytes = graph_[node.output].element == Element::u8;
        auto const result = bytes ? concat("/r", nodes_.size()) : name(node.output);
        if (node.kind == "QuantizedConv") {
            Form form{node.attributes};
            for (auto const* const own : {"scale", "zero", "out_scale", "out_zero"}) {
                form.numbers.erase(own);
            }
            put("Conv", {values, weights, input(node, 3)}, result, form);
        } else if (graph_[node.output].shape.size() == 2) {
            put("Gemm", {values, weights, input(node, 3)}, result, {{{"transB", std::int64_t{1}}}});
        } else {
            auto const turned = intermediate("Transpose", {weights});
            put("Add", {intermediate("MatMul", {values, turned}), input(node, 3)}, result, {});
        }
        if (bytes) {
            put_bytes(result, node, "out_");
        }
    }

    Graph const& graph_;
    std::vector<bool> written_;
    std::vector<Message> nodes_;
    std::vector<Message> constants_;
};

} // namespace

std::string onnx_file(Graph const& graph) {
    std::uint64_t bytes = 0;
    for (auto const& tensor : graph.tensors()) {
        bytes += tensor.values.size();
    }
    Message model;
    if (bytes < max_bytes) {
        model.number(1, ir_version).text(2, "lockstep").message(7, OnnxGraph(graph).made());
        model.message(8, Message().text(1, "").number(2, opset));
        for (auto const& [key, value] : graph.facts) {
            model.message(14, Message().text(1, key).text(2, value));
        }
    }
    if (bytes >= max_bytes || model.bytes().size() > max_bytes) {
        throw Error(ExitCode::usage, {concat("the model has ", bytes_text(bytes), " of weights"),
                                      "a single ONNX file holds less than 2 GiB",
                                      "Use --format safetensors or torchscript"});
    }
    return model.bytes();
}

} // namespace lockstep::deploy
