#pragma once

#include "deploy/graph.hpp"
#include "nn/record_calls.hpp"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace lockstep::lower {

/// Builds a graph's operators, and derives the shapes of their results.
class GraphParts {
  public:
    explicit GraphParts(deploy::Graph& graph) : graph_(graph) {}

    using Id = deploy::TensorId;
    deploy::Graph& graph() { return graph_; }
    deploy::Tensor const& operator[](Id id) const { return graph_[id]; }
    deploy::Shape const& shape(Id id) const { return graph_[id].shape; }

    Id unary(std::string const& kind, Id a, deploy::Attributes attributes = {});
    Id binary(std::string const& kind, Id a, Id b);
    Id compare(std::string const& kind, Id a, Id b); ///< to booleans
    Id where(Id condition, Id a, Id b);
    Id matmul(Id a, Id b); ///< of at least two dimensions each
    Id cast(Id a, deploy::Element element);
    Id reshape(Id a, deploy::Shape shape);
    Id transpose(Id a, std::vector<std::int64_t> const& order);
    Id slice(Id a, std::int64_t axis, std::int64_t start, std::int64_t end, std::int64_t step = 1);
    Id join(std::vector<Id> const& parts, std::int64_t axis);
    Id reduce(std::string const& kind, Id a, std::vector<std::int64_t> const& axes, bool keep);
    Id softmax(std::string const& kind, Id a, std::int64_t axis);
    Id expanded(Id a, deploy::Shape const& shape);
    Id gather(Id values, Id indices, std::int64_t axis);
    /// As many before and behind each axis: all before, then all behind.
    Id padded(Id a, std::vector<std::int64_t> const& pads, double value);
    Id wholes(std::vector<std::int64_t> const& values);
    Id wholes(std::vector<std::int64_t> const& values, std::vector<std::int64_t> const& extents);
    /// Throws  Error 64 where the axis is the batch: samples would be mixed
    void require_own(Id a, std::int64_t axis) const;

  private:
    deploy::Graph& graph_;
};

/// Tensors of the graph that stand for the values of a recording.
struct ValueTable {
    static constexpr deploy::TensorId absent = static_cast<deploy::TensorId>(-1);
    std::vector<deploy::TensorId> values;              ///< by their number
    std::map<void const*, deploy::TensorId> constants; ///< parameters, by their implementation
    std::map<void const*, std::string> names;          ///< the same
    std::map<deploy::TensorId, deploy::TensorId> transposed; ///< transposed constants
};

/// One operator that was recorded with batches of 2 and 3 samples, as it becomes part of a graph.
/// What is the same in both is fixed; an extent that grows with the batch counts per sample.
class LoweredCall : public GraphParts {
  public:
    static constexpr std::int64_t batches[] = {2, 3};

    LoweredCall(deploy::Graph& graph, ValueTable& table, nn::RecordedCall const& two,
                nn::RecordedCall const& three);

    /// An item of a list.
    struct Item {
        bool is_there = false;
        bool counts_samples =
            false; ///< it is 0, 1, … for the samples of a batch, and has no tensor
        Id tensor = ValueTable::absent;
    };

    std::string const& name() const { return two_.name; }
    std::size_t arguments() const { return two_.arguments.size(); }
    bool has(std::size_t at) const; ///< argument exists and is not None
    bool is_tensor(std::size_t at) const;
    Id tensor(std::size_t at);
    std::vector<Id> tensors(std::size_t at);
    /// The items of a list of which some may be missing.
    std::vector<Item> items(std::size_t at);
    /// A constant matrix, transposed; the same tensor each time.
    Id transposed_constant(Id matrix);
    std::int64_t whole(std::size_t at) const;
    std::vector<std::int64_t> wholes_of(std::size_t at) const; ///< a number counts as a list
    double number(std::size_t at) const;
    bool flag(std::size_t at) const;
    std::string text(std::size_t at) const;
    /// An axis from 0.
    std::int64_t axis(std::size_t at, std::size_t rank) const;
    /// Axes from 0, of which there must be any: else all samples of a batch would be mixed.
    std::vector<std::int64_t> axes(std::size_t at, std::size_t rank) const;
    /// A tensor or a number, as `element`.
    Id operand(std::size_t at, deploy::Element element);
    deploy::Element promoted(std::size_t a, std::size_t b) const;

    std::size_t results() const { return two_.results.size(); }
    deploy::Shape result_shape(std::size_t at = 0) const;
    deploy::Element result_element(std::size_t at = 0) const;
    /// The next result.
    void give(Id id);
    /// Leaves out the other results, which no exported model can use.
    void give_nothing_more();

    /// The arguments, those of the batch of two samples; and what LibTorch's operator gives for
    /// others.
    std::vector<c10::IValue> const& given() const noexcept { return two_.arguments; }
    torch::Tensor applied(std::vector<c10::IValue> arguments) const;

    [[noreturn]] void refuse(std::string const& why) const;
    /// Refuses dropout that evaluation does not switch off.
    [[noreturn]] void refuse_dropout() const;

  private:
    Id constant(torch::Tensor const& two, torch::Tensor const& three);
    Id any(torch::Tensor const& two, torch::Tensor const& three, std::size_t flat);
    std::size_t first_flat(std::size_t at) const;

    ValueTable& table_;
    nn::RecordedCall const& two_;
    nn::RecordedCall const& three_;
    std::size_t given_ = 0;
};

deploy::Shape shape_of(torch::Tensor const& two, torch::Tensor const& three);

using Lowering = std::function<void(LoweredCall&)>;
using Lowerings = std::map<std::string, Lowering>;

/// Lowerings by the operators' names, in groups.
Lowerings lower_arithmetic();
Lowerings lower_products();
Lowerings lower_activations();
Lowerings lower_windows();    ///< convolutions, pooling
Lowerings lower_resampling(); ///< what takes entries along axes from other places
Lowerings lower_indexing();   ///< what takes entries from computed places
Lowerings lower_norms();
Lowerings lower_shapes();
Lowerings lower_sequences();
Lowerings lower_integers();

} // namespace lockstep::lower
