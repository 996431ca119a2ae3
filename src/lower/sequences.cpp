#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "lowered_call.hpp"

namespace lockstep::lower {

namespace {

using deploy::Element;
using deploy::Shape;
using Id = GraphParts::Id;

/// softmax(q kᵀ · scale + mask) v
void lower_attention(LoweredCall& call) {
    auto const query = call.tensor(0);
    auto const rank = call.shape(query).size();
    auto const for_heads = [&](Id values) { // keys and values may be those of several queries
        auto const axis = rank - 3;
        auto const heads = call.flag(7) ? call.shape(query)[axis].count : 0;
        auto const own = call.flag(7) ? call.shape(values)[axis].count : 0;
        if (heads == own) {
            return values;
        }
        std::vector<std::int64_t> places;
        for (std::int64_t at = 0; at < heads; ++at) {
            places.push_back(at * own / heads);
        }
        return call.gather(values, call.wholes(places), static_cast<std::int64_t>(axis));
    };
    auto const key = for_heads(call.tensor(1));
    if (rank != call.shape(key).size()) {
        call.refuse("its queries and keys have different numbers of dimensions");
    }
    if (call.number(4) != 0) {
        call.refuse_dropout();
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
    call.give(call.matmul(weights, for_heads(call.tensor(2))));
}

/// What a recurrent layer keeps between steps, [batch, units] each: what it shows, and what an LSTM
/// keeps besides.
using States = std::vector<Id>;

/// Weights of one direction of one layer.
struct CellWeights {
    Id of_inputs;                      ///< turned over, [inputs, gates · units]
    Id of_shown;                       ///< [shown, gates · units]
    std::vector<Id> biases;            ///< none, or one for each of the two
    std::optional<Id> projection = {}; ///< of an LSTM whose units show less, [units, shown]
};

/// One of `count` equal parts of the columns.
Id gate_of(GraphParts& parts, Id gates, std::int64_t number, std::int64_t count) {
    auto const units = parts.shape(gates)[1].count / count;
    return parts.slice(gates, 1, number * units, (number + 1) * units);
}

States lstm_step(GraphParts& parts, Id from_inputs, States const& before,
                 CellWeights const& weights) {
    auto gates = parts.binary("Add", from_inputs, parts.matmul(before[0], weights.of_shown));
    auto const gate = [&](std::int64_t number, char const* kind) {
        return parts.unary(kind, gate_of(parts, gates, number, 4));
    };
    auto const kept = parts.binary("Add", parts.binary("Mul", gate(1, "Sigmoid"), before[1]),
                                   parts.binary("Mul", gate(0, "Sigmoid"), gate(2, "Tanh")));
    auto const shown = parts.binary("Mul", gate(3, "Sigmoid"), parts.unary("Tanh", kept));
    return {weights.projection ? parts.matmul(shown, *weights.projection) : shown, kept};
}

States gru_step(GraphParts& parts, Id from_inputs, States const& before,
                CellWeights const& weights) {
    auto from_shown = parts.matmul(before[0], weights.of_shown);
    if (!weights.biases.empty()) {
        from_shown = parts.binary("Add", from_shown, weights.biases[1]);
    }
    auto const gate = [&](std::int64_t number) {
        return parts.unary("Sigmoid", parts.binary("Add", gate_of(parts, from_inputs, number, 3),
                                                   gate_of(parts, from_shown, number, 3)));
    };
    auto const remembered = parts.binary("Mul", gate(0), gate_of(parts, from_shown, 2, 3));
    auto const fresh =
        parts.unary("Tanh", parts.binary("Add", gate_of(parts, from_inputs, 2, 3), remembered));
    auto const stays = parts.binary("Mul", gate(1), parts.binary("Sub", before[0], fresh));
    return {parts.binary("Add", fresh, stays)};
}

States plain_step(GraphParts& parts, char const* kind, Id from_inputs, States const& before,
                  CellWeights const& weights) {
    auto const from_shown = parts.matmul(before[0], weights.of_shown);
    return {parts.unary(kind, parts.binary("Add", from_inputs, from_shown))};
}

States tanh_step(GraphParts& parts, Id from_inputs, States const& before,
                 CellWeights const& weights) {
    return plain_step(parts, "Tanh", from_inputs, before, weights);
}

States relu_step(GraphParts& parts, Id from_inputs, States const& before,
                 CellWeights const& weights) {
    return plain_step(parts, "Relu", from_inputs, before, weights);
}

/// A kind of recurrent layer.
struct CellKind {
    std::size_t states;
    std::size_t biases_of_inputs; ///< of the two biases, how many are added to what inputs give
    States (*step)(GraphParts&, Id from_inputs, States const& before, CellWeights const&);
};

constexpr CellKind lstm_kind{2, 2, lstm_step};
constexpr CellKind gru_kind{1, 1, gru_step};
constexpr CellKind tanh_kind{1, 2, tanh_step};
constexpr CellKind relu_kind{1, 2, relu_step};

/// What the inputs, [batch, …, inputs], give to the gates.
Id projected(GraphParts& parts, CellKind const& kind, Id inputs, CellWeights const& weights) {
    auto found = parts.matmul(inputs, weights.of_inputs);
    for (std::size_t i = 0; i < std::min(kind.biases_of_inputs, weights.biases.size()); ++i) {
        found = parts.binary("Add", found, weights.biases[i]);
    }
    return found;
}

constexpr std::int64_t max_steps = 1024; // each becomes nodes of its own

/// One direction over [batch, steps, …]; returns [batch, steps, shown] and replaces the states.
Id run_layer(LoweredCall& call, CellKind const& kind, Id inputs, CellWeights const& weights,
             States& states, bool backward) {
    auto const from_inputs = projected(call, kind, inputs, weights);
    auto const shape = call.shape(from_inputs);
    auto const steps = shape[1].count;
    if (shape[1].batch || steps > max_steps) {
        call.refuse("it has more than 1024 steps, or their number depends on the batch size");
    }
    std::vector<Id> outputs(static_cast<std::size_t>(steps));
    for (std::int64_t i = 0; i < steps; ++i) {
        auto const at = backward ? steps - 1 - i : i;
        auto const now = call.reshape(call.slice(from_inputs, 1, at, at + 1), {shape[0], shape[2]});
        states = kind.step(call, now, states, weights);
        auto const& own = call.shape(states[0]);
        outputs[static_cast<std::size_t>(at)] =
            call.reshape(states[0], {own[0], {1, false}, own[1]});
    }
    return call.join(outputs, 1);
}

Id turned_sequence(GraphParts& parts, Id sequence) {
    return parts.transpose(sequence, {1, 0, 2});
}

/// (input, states, weights, biases?, layers, dropout, training?, bidirectional?, batch first?): the
/// states of an LSTM are a list, that of another layer is a tensor. Each direction of each layer
/// has two weights, two biases if there are any, and the weight of a projection if there is one.
void lower_recurrent(LoweredCall& call, CellKind const& kind) {
    if (call.arguments() != 9 || call.is_tensor(kind.states > 1 ? 1 : 2)) {
        call.refuse("its sequences are packed");
    }
    auto const layers = call.whole(4);
    if (call.flag(6) && call.number(5) != 0 && layers > 1) { // only between layers
        call.refuse_dropout();
    }
    auto const first = kind.states > 1 ? call.tensors(1) : States{call.tensor(1)};
    auto const tensors = call.tensors(2);
    std::size_t const directions = call.flag(7) ? 2 : 1;
    auto const each = tensors.size() / (directions * static_cast<std::size_t>(layers));
    std::size_t const unprojected = call.flag(3) ? 4 : 2;
    auto sequence = call.flag(8) ? call.tensor(0) : turned_sequence(call, call.tensor(0));
    std::vector<std::vector<Id>> last(kind.states); // of all layers and directions
    for (std::size_t layer = 0; layer * each * directions < tensors.size(); ++layer) {
        std::vector<Id> both;
        for (std::size_t direction = 0; direction < directions; ++direction) {
            auto const number = layer * directions + direction;
            auto const* const own = tensors.data() + number * each;
            CellWeights weights{call.transposed_constant(own[0]),
                                call.transposed_constant(own[1]),
                                {own + 2, own + unprojected}};
            if (each > unprojected) {
                weights.projection = call.transposed_constant(own[unprojected]);
            }
            States states;
            for (auto const all : first) {
                auto const at = static_cast<std::int64_t>(number);
                auto const one = call.slice(all, 0, at, at + 1);
                states.push_back(call.reshape(one, {call.shape(one)[1], call.shape(one)[2]}));
            }
            both.push_back(run_layer(call, kind, sequence, weights, states, direction == 1));
            for (std::size_t i = 0; i < kind.states; ++i) {
                auto const& form = call.shape(states[i]);
                last[i].push_back(call.reshape(states[i], {{1, false}, form[0], form[1]}));
            }
        }
        sequence = call.join(both, 2);
    }
    call.give(call.flag(8) ? sequence : turned_sequence(call, sequence));
    for (auto const& states : last) {
        call.give(call.join(states, 0));
    }
}

/// One step: (input, states, two weights, two biases).
void lower_cell(LoweredCall& call, CellKind const& kind) {
    auto const before = kind.states > 1 ? call.tensors(1) : States{call.tensor(1)};
    CellWeights weights{
        call.transposed_constant(call.tensor(2)), call.transposed_constant(call.tensor(3)), {}};
    if (call.has(4)) {
        weights.biases = {call.tensor(4), call.tensor(5)};
    }
    auto const from_inputs = projected(call, kind, call.tensor(0), weights);
    for (auto const state : kind.step(call, from_inputs, before, weights)) {
        call.give(state);
    }
}

Lowering recurrent(CellKind const& kind) {
    return [&kind](LoweredCall& call) { lower_recurrent(call, kind); };
}

Lowering cell(CellKind const& kind) {
    return [&kind](LoweredCall& call) { lower_cell(call, kind); };
}

} // namespace

Lowerings lower_sequences() {
    return {{"aten::scaled_dot_product_attention", lower_attention},
            {"aten::lstm", recurrent(lstm_kind)},
            {"aten::gru", recurrent(gru_kind)},
            {"aten::rnn_tanh", recurrent(tanh_kind)},
            {"aten::rnn_relu", recurrent(relu_kind)},
            {"aten::lstm_cell", cell(lstm_kind)},
            {"aten::gru_cell", cell(gru_kind)},
            {"aten::rnn_tanh_cell", cell(tanh_kind)},
            {"aten::rnn_relu_cell", cell(relu_kind)}};
}

} // namespace lockstep::lower
