#pragma once

#include "nn/channel_graph.hpp"
#include "nn/record_calls.hpp"

#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace lockstep::nn {

/// Whether an argument is a tensor that was given.
inline bool is_there(c10::IValue const& argument) {
    return argument.isTensor() && argument.toTensor().defined();
}

/// Follows channels through a recording: each layer makes some, and operators that join channels
/// tie them together. A channel is a number; ties are kept as a forest.
class ChannelTracer {
  public:
    ChannelTracer(ChannelGraph& graph, Model const& model);

    void follow(Recording const& recording);
    /// Writes what was found into the graph.
    void finish();

    /// The operators that it knows.
    static std::set<std::string> known();

  private:
    /// A value of the recording.
    struct Value {
        std::vector<std::int64_t> shape;
        std::vector<int> channels; ///< of the indices of one extent; empty: none are known
        std::int64_t axis = 0;     ///< that extent
    };
    using Rule = void (ChannelTracer::*)(RecordedCall const&);
    static std::map<std::string, Rule> const& rules();

    // The rules, in channel_rules.cpp.
    void convolution(RecordedCall const& call);
    void grouped_convolution(RecordedCall const& call, std::int64_t groups);
    void linear(RecordedCall const& call);
    void batch_norm(RecordedCall const& call);
    void instance_norm(RecordedCall const& call);
    void group_norm(RecordedCall const& call);
    void norm_of_extents(RecordedCall const& call);
    void parts_of_norm(RecordedCall const& call, std::initializer_list<std::size_t> arguments,
                       std::size_t extent);
    void by_element(RecordedCall const& call);
    void prelu(RecordedCall const& call);
    void by_place(RecordedCall const& call);
    void of_two(RecordedCall const& call);
    void concatenation(RecordedCall const& call);
    void reduction(RecordedCall const& call);
    void reshape(RecordedCall const& call);
    void permutation(RecordedCall const& call);
    void unknown(RecordedCall const& call);
    void tied(RecordedCall const& call);

    /// Arguments of a layer.
    struct Layer {
        std::size_t input = 0; ///< which of the call's tensors
        std::optional<std::size_t> weight{};
        bool has_bias = false;
        std::optional<std::size_t> bias{};
    };
    void layer(RecordedCall const& call, Layer const& parts, std::size_t input_extent,
               std::int64_t axis);
    int fresh();
    std::vector<int> fresh(std::int64_t count);
    int root(int channel);
    bool all_tied(std::vector<int> const& channels);
    void tie(int a, int b);
    void tie(std::vector<int> const& some, std::vector<int> const& others);
    void keep(std::vector<int> const& channels);
    void give(RecordedCall const& call, std::vector<int> channels, std::int64_t axis);
    Value const& input(RecordedCall const& call, std::size_t at = 0) const;
    std::optional<std::size_t> tensor_of(c10::IValue const& argument) const;
    std::optional<std::size_t> transposed_of(c10::IValue const& argument) const;
    std::optional<std::size_t> extent_along(std::size_t tensor, Value const& value) const;
    void count_product(std::size_t weight);
    void count_fixed_product(RecordedCall const& call);
    void label(std::size_t tensor, std::size_t extent, std::vector<int> const& channels);

    ChannelGraph& graph_;
    bool takes_sizes_;                              ///< of its tensors: the model
    std::map<void const*, std::size_t> parameters_; ///< in the graph's tensors
    std::vector<Value> values_;
    std::vector<int> parent_;
    std::vector<char> stays_; ///< of roots
};

} // namespace lockstep::nn
