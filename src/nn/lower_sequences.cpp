#include "nn/lowered_call.hpp"

#include <cmath>
#include <limits>

namespace lockstep::nn {

namespace {

using deploy::Element;
using deploy::Shape;
using Id = GraphParts::Id;

/// softmax(q kᵀ · scale + mask) v
void lower_attention(LoweredCall& call) {
    auto const query = call.tensor(0);
    auto const key = call.tensor(1);
    auto const rank = call.shape(query).size();
    if (rank != call.shape(key).size() || call.flag(7)) {
        call.refuse("it has different numbers of query and key heads");
    }
    std::vector<std::int64_t> order(rank);
    for (std::size_t i = 0; i < rank; ++i) {
        order[i] = static_cast<std::int64_t>(i);
    }
    std::swap(order[rank - 1], order[rank - 2]);
    auto const width = static_cast<double>(call.shape(query).back().count);
    auto const scale = call.has(6) ? call.number(6) : 1 / std::sqrt(width);
    auto scores = call.matmul(call.binary("Mul", query, call.graph().real(scale)),
                              call.transpose(key, order));
    auto const none = call.graph().real(-std::numeric_limits<double>::infinity());
    if (call.flag(5)) {
        auto const rows = call.shape(scores)[rank - 2].count;
        auto const columns = call.shape(scores)[rank - 1].count;
        std::vector<std::byte> seen;
        for (std::int64_t row = 0; row < rows; ++row) {
            for (std::int64_t column = 0; column < columns; ++column) {
                seen.push_back(static_cast<std::byte>(column <= row));
            }
        }
        auto const mask =
            call.graph().constant({}, Element::boolean, deploy::fixed_shape({rows, columns}), seen);
        scores = call.where(mask, scores, none);
    }
    if (call.has(3)) {
        auto const mask = call.tensor(3);
        scores = call[mask].element == Element::boolean ? call.where(mask, scores, none)
                                                        : call.binary("Add", scores, mask);
    }
    auto const weights = call.softmax("Softmax", scores, static_cast<std::int64_t>(rank) - 1);
    call.give(call.matmul(weights, call.tensor(2)));
}

/// What an LSTM keeps between steps: [batch, units] each.
struct LstmState {
    Id shown;
    Id kept;
};

/// Weights of one direction of one layer.
struct LstmWeights {
    Id of_inputs; ///< turned over, [inputs, 4 · units]
    Id of_shown;  ///< [units, 4 · units]
    std::vector<Id> biases;
};

LstmState step_of(GraphParts& parts, Id from_inputs, LstmState const& before,
                  LstmWeights const& weights) {
    auto gates = parts.binary("Add", from_inputs, parts.matmul(before.shown, weights.of_shown));
    auto const units = parts.shape(gates)[1].count / 4;
    auto const gate = [&](std::int64_t number, char const* kind) {
        return parts.unary(kind, parts.slice(gates, 1, number * units, (number + 1) * units));
    };
    auto const kept = parts.binary("Add", parts.binary("Mul", gate(1, "Sigmoid"), before.kept),
                                   parts.binary("Mul", gate(0, "Sigmoid"), gate(2, "Tanh")));
    return {parts.binary("Mul", gate(3, "Sigmoid"), parts.unary("Tanh", kept)), kept};
}

constexpr std::int64_t max_steps = 1024; // each becomes nodes of its own

/// One direction over [batch, steps, …]; returns [batch, steps, units] and replaces the state.
Id run_lstm(LoweredCall& call, Id inputs, LstmWeights const& weights, LstmState& state,
            bool backward) {
    auto projected = call.matmul(inputs, weights.of_inputs);
    for (auto const bias : weights.biases) {
        projected = call.binary("Add", projected, bias);
    }
    auto const shape = call.shape(projected);
    auto const steps = shape[1].count;
    if (shape[1].batch || steps > max_steps) {
        call.refuse("it has more than 1024 steps, or their number depends on the batch size");
    }
    std::vector<Id> outputs(static_cast<std::size_t>(steps));
    for (std::int64_t i = 0; i < steps; ++i) {
        auto const at = backward ? steps - 1 - i : i;
        auto const now = call.reshape(call.slice(projected, 1, at, at + 1), {shape[0], shape[2]});
        state = step_of(call, now, state, weights);
        auto const& own = call.shape(state.shown);
        outputs[static_cast<std::size_t>(at)] =
            call.reshape(state.shown, {own[0], {1, false}, own[1]});
    }
    return call.join(outputs, 1);
}

Id turned_sequence(GraphParts& parts, Id sequence) {
    return parts.transpose(sequence, {1, 0, 2});
}

void lower_lstm(LoweredCall& call) {
    if (call.arguments() != 9 || call.is_tensor(1)) {
        call.refuse("its sequences are packed");
    }
    auto const states = call.tensors(1);
    auto const tensors = call.tensors(2);
    bool const biases = call.flag(3);
    std::size_t const directions = call.flag(7) ? 2 : 1;
    std::size_t const each = biases ? 4 : 2;
    if (states.size() != 2 ||
        tensors.size() != each * directions * static_cast<std::size_t>(call.whole(4))) {
        call.refuse("it has projections");
    }
    auto sequence = call.flag(8) ? call.tensor(0) : turned_sequence(call, call.tensor(0));
    std::vector<Id> shown;
    std::vector<Id> kept;
    auto const state_of = [&](Id all, std::size_t number) {
        auto const at = static_cast<std::int64_t>(number);
        auto const one = call.slice(all, 0, at, at + 1);
        return call.reshape(one, {call.shape(one)[1], call.shape(one)[2]});
    };
    for (std::size_t layer = 0; layer * each * directions < tensors.size(); ++layer) {
        std::vector<Id> both;
        for (std::size_t direction = 0; direction < directions; ++direction) {
            auto const number = layer * directions + direction;
            auto const* const own = tensors.data() + number * each;
            LstmWeights const weights{call.transposed_constant(own[0]),
                                      call.transposed_constant(own[1]),
                                      {own + 2, own + each}};
            LstmState state{state_of(states[0], number), state_of(states[1], number)};
            both.push_back(run_lstm(call, sequence, weights, state, direction == 1));
            auto const& form = call.shape(state.shown);
            shown.push_back(call.reshape(state.shown, {{1, false}, form[0], form[1]}));
            kept.push_back(call.reshape(state.kept, {{1, false}, form[0], form[1]}));
        }
        sequence = call.join(both, 2);
    }
    call.give(call.flag(8) ? sequence : turned_sequence(call, sequence));
    call.give(call.join(shown, 0));
    call.give(call.join(kept, 0));
}

} // namespace

Lowerings lower_sequences() {
    return {{"aten::scaled_dot_product_attention", lower_attention}, {"aten::lstm", lower_lstm}};
}

} // namespace lockstep::nn
