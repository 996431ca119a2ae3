#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace lockstep::deploy {

/// Types of elements in an exported model; f64 only of inputs and of constants.
enum class Element { f32, i64, u8, boolean, i8, f64 };
inline constexpr std::size_t element_types = 6;

std::size_t bytes_of(Element element);

/// One extent of a tensor: `count`, or `count` for each sample of the batch.
struct Extent {
    std::int64_t count = 1;
    bool batch = false;

    bool operator==(Extent const&) const = default;
};
using Shape = std::vector<Extent>;

/// Elements of a tensor for a batch of one sample.
std::int64_t elements(Shape const& shape);
/// Extents of a tensor for a batch of one sample.
std::vector<std::int64_t> extents_of(Shape const& shape);
/// The shape of a constant.
Shape fixed_shape(std::vector<std::int64_t> const& extents);
/// The shape of an element-wise operator's result.
///
/// Throws  std::invalid_argument where they do not fit
Shape broadcast(Shape const& a, Shape const& b);

/// What a node computes, or a constant.
struct Tensor {
    std::string name;
    Element element = Element::f32;
    Shape shape{};
    std::vector<std::byte> values{}; ///< of a constant, row by row
    bool constant = false;

    std::span<float const> reals() const;         ///< of a constant of f32
    std::span<double const> doubles() const;      ///< of a constant of f64
    std::span<std::int64_t const> wholes() const; ///< of a constant of i64
};

using TensorId = std::size_t;
using Attribute = std::variant<std::int64_t, double, std::vector<std::int64_t>>;
using Attributes = std::map<std::string, Attribute>;

/// An operator, by its name and with the meaning that ONNX gives it (opset 17). Where ONNX takes
/// shapes or axes as tensors, they are attributes here: `shape` of Reshape (-1: the batch), `axes`,
/// `starts`, `ends` and `steps` of Slice, `axes` of ReduceMean, ReduceSum and ReduceMax, `axis` of
/// CumSum, `pads` of Pad, `to` of Cast, `scale` and `zero` of QuantizeLinear, `adds` of
/// ScatterElements; `mode` and `padding` of GridSample are numbers, those of LibTorch. Gelu is not
/// from ONNX
/// (`tanh`: approximated); ExpandAs, which repeats its first input to its result's shape, the batch
/// being that of axis `batch` of the second; Normalize, (input - second input) / third, all of them
/// f64, rounded to float32; and QuantizedConv and QuantizedGemm, layers whose
/// inputs are bytes, value = `scale` * (byte - `zero`), whose weights, [outputs, inputs, place…],
/// are int8, and which add in whole numbers: inputs, weights, scales [outputs], bias [outputs].
/// They give float32; or, with `out_scale` and `out_zero`, bytes.
struct Node {
    std::string kind;
    std::vector<TensorId> inputs{};
    TensorId output = 0;
    Attributes attributes{};

    std::int64_t whole(std::string const& name) const;
    double real(std::string const& name) const;
    std::vector<std::int64_t> const& wholes(std::string const& name) const;
};

/// An inference graph, free of any framework: the input of the writers of ONNX and C. Nodes come
/// after those whose results they need; the first extent of inputs and output is the batch.
class Graph {
  public:
    /// The next input.
    TensorId input(std::string name, Element element, Shape shape);
    TensorId constant(std::string name, Element element, Shape shape,
                      std::vector<std::byte> values);
    TensorId reals(std::vector<float> const& values, std::vector<std::int64_t> const& extents);
    TensorId doubles(std::vector<double> const& values, std::vector<std::int64_t> const& extents);
    TensorId real(double value) { return reals({static_cast<float>(value)}, {}); }
    TensorId whole(std::int64_t value);
    TensorId add(std::string kind, std::vector<TensorId> inputs, std::pair<Element, Shape> result,
                 Attributes attributes = {});
    void set_output(TensorId id);

    Tensor const& operator[](TensorId id) const { return tensors_.at(id); }
    std::vector<Tensor> const& tensors() const noexcept { return tensors_; }
    std::vector<Node> const& nodes() const noexcept { return nodes_; }
    std::vector<TensorId> const& inputs() const noexcept { return inputs_; }
    TensorId output() const noexcept { return output_; }

    /// Replaces the nodes.
    void replace_nodes(std::vector<Node> nodes);

    /// Facts for readers of the file, by key; and the names of classes, by number.
    std::map<std::string, std::string> facts;
    std::vector<std::string> class_names;

  private:
    std::vector<Tensor> tensors_;
    std::vector<Node> nodes_;
    std::vector<TensorId> inputs_;
    TensorId output_ = 0;
};

/// Folds norms after convolutions into their weights, rounds to bytes as early as the result stays
/// the same, and removes what the output does not need.
void simplify(Graph& graph);
/// The second of these: before Relu and MaxPool, within a layer in whole numbers.
void quantise_early(Graph& graph);

} // namespace lockstep::deploy
