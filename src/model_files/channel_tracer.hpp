#pragma once

#include "nn/record_calls.hpp"

#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "channel_graph.hpp"

namespace lockstep::train {

/// Whether an argument is a tensor that was given.
inline bool is_there(c10::IValue const& argument) {
    return argument.isTensor() && argument.toTensor().defined();
}

/// Follows channels through a recording: each layer makes some, and operators that join channels
/// tie them together. A channel is a number; ties are kept as a forest.
class ChannelTracer {
  public:
    ChannelTracer(ChannelGraph& graph, nn::Model const& model);

    void follow(nn::Recording const& recording);
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
    using Rule = void (ChannelTracer::*)(nn::RecordedCall const&);
    static std::map<std::string, Rule> const& rules();

    // The rules, in channel_rules.cpp.
    void convolution(nn::RecordedCall const& call);
    void grouped_convolution(nn::RecordedCall const& call, std::int64_t groups);
    void linear(nn::RecordedCall const& call);
    void batch_norm(nn::RecordedCall const& call);
    void instance_norm(nn::RecordedCall const& call);
    void group_norm(nn::RecordedCall const& call);
    void norm_of_extents(nn::RecordedCall const& call);
    void parts_of_norm(nn::RecordedCall const& call, std::initializer_list<std::size_t> arguments,
                       std::size_t extent);
    void by_element(nn::RecordedCall const& call);
    void prelu(nn::RecordedCall const& call);
    void by_place(nn::RecordedCall const& call);
    void of_two(nn::RecordedCall const& call);
    void concatenation(nn::RecordedCall const& call);
    void reduction(nn::RecordedCall const& call);
    void reshape(nn::RecordedCall const& call);
    void permutation(nn::RecordedCall const& call);
    void unknown(nn::RecordedCall const& call);
    void tied(nn::RecordedCall const& call);

    /// Arguments of a layer.
    struct Layer {
        std::size_t input = 0; ///< which of the call's tensors
        std::optional<std::size_t> weight{};
        bool has_bias = false;
        std::optional<std::size_t> bias{};
    };
    void layer(nn::RecordedCall const& call, Layer const& parts, std::size_t input_extent,
               std::int64_t axis);
    int fresh();
    std::vector<int> fresh(std::int64_t count);
    int root(int channel);
    bool all_tied(std::vector<int> const& channels);
    void tie(int a, int b);
    void tie(std::vector<int> const& some, std::vector<int> const& others);
    void keep(std::vector<int> const& channels);
    void give(nn::RecordedCall const& call, std::vector<int> channels, std::int64_t axis);
    Value const& input(nn::RecordedCall const& call, std::size_t at = 0) const;
    std::optional<std::size_t> tensor_of(c10::IValue const& argument) const;
    std::optional<std::size_t> transposed_of(c10::IValue const& argument) const;
    std::optional<std::size_t> extent_along(std::size_t tensor, Value const& value) const;
    void count_product(std::size_t weight);
    void count_fixed_product(nn::RecordedCall const& call);
    void label(std::size_t tensor, std::size_t extent, std::vector<int> const& channels);

    ChannelGraph& graph_;
    bool takes_sizes_;                              ///< of its tensors: the model
    std::map<void const*, std::size_t> parameters_; ///< in the graph's tensors
    std::vector<Value> values_;
    std::vector<int> parent_;
    std::vector<char> stays_; ///< of roots
};

} // namespace lockstep::train
