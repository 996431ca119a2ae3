#include <functional>
#include <limits>
#include <numeric>

#include "lowered_call.hpp"

namespace lockstep::lower {

namespace {

using deploy::Element;
using deploy::Shape;
using Id = GraphParts::Id;

/// Weight, bias, mean and variance are arguments 1 to 4.
void norm_of_batches(LoweredCall& call, std::size_t epsilon) {
    if (!call.has(3) || !call.has(4)) {
        call.refuse("it takes its statistics from the batch");
    }
    auto const mean = call.tensor(3);
    auto const channels = call.shape(mean).front().count;
    auto const or_all = [&](std::size_t at, float value) {
        return call.has(at)
                   ? call.tensor(at)
                   : call.graph().reals(
                         std::vector<float>(static_cast<std::size_t>(channels), value), {channels});
    };
    call.give(call.graph().add(
        "BatchNormalization", {call.tensor(0), or_all(1, 1), or_all(2, 0), mean, call.tensor(4)},
        {Element::f32, call.result_shape()}, {{"epsilon", call.number(epsilon)}}));
    call.give_nothing_more();
}

void lower_batch_norm(LoweredCall& call) {
    if (call.flag(5)) {
        call.refuse("it takes its statistics from the batch");
    }
    norm_of_batches(call, 7);
}

void lower_layer_norm(LoweredCall& call) {
    auto const x = call.tensor(0);
    auto const extents = call.wholes_of(1);
    auto const rank = static_cast<std::int64_t>(call.shape(x).size());
    auto const count =
        std::accumulate(extents.begin(), extents.end(), std::int64_t{1}, std::multiplies<>());
    std::vector<Id> inputs{x};
    inputs.push_back(
        call.has(2)
            ? call.tensor(2)
            : call.graph().reals(std::vector<float>(static_cast<std::size_t>(count), 1), extents));
    if (call.has(3)) {
        inputs.push_back(call.tensor(3));
    }
    call.give(call.graph().add(
        "LayerNormalization", inputs, {Element::f32, call.result_shape()},
        {{"axis", rank - static_cast<std::int64_t>(extents.size())}, {"epsilon", call.number(4)}}));
    call.give_nothing_more();
}

/// x / sqrt(mean(x²) + epsilon) · weight
void lower_rms_norm(LoweredCall& call) {
    auto const x = call.tensor(0);
    auto const rank = static_cast<std::int64_t>(call.shape(x).size());
    auto const count = static_cast<std::int64_t>(call.wholes_of(1).size());
    std::vector<std::int64_t> axes(static_cast<std::size_t>(count));
    std::iota(axes.begin(), axes.end(), rank - count);
    auto const square = call.reduce("ReduceMean", call.binary("Mul", x, x), axes, true);
    auto const epsilon =
        call.has(3) ? call.number(3) : double{std::numeric_limits<float>::epsilon()};
    auto const root = call.unary("Sqrt", call.binary("Add", square, call.graph().real(epsilon)));
    auto const scaled = call.binary("Div", x, root);
    call.give(call.has(2) ? call.binary("Mul", scaled, call.tensor(2)) : scaled);
}

/// Normalises groups within each sample; weight and bias are the arguments from `weight` on.
void norm_of_groups(LoweredCall& call, std::int64_t groups, double epsilon, std::size_t weight) {
    auto const x = call.tensor(0);
    auto const shape = call.shape(x);
    for (std::size_t axis = 1; axis < shape.size(); ++axis) {
        call.require_own(x, static_cast<std::int64_t>(axis));
    }
    auto const each = deploy::elements(shape) / shape[0].count / groups;
    auto const grouped = call.reshape(x, Shape{shape[0], {groups, false}, {each, false}});
    auto const centred = call.binary("Sub", grouped, call.reduce("ReduceMean", grouped, {2}, true));
    auto const variance =
        call.reduce("ReduceMean", call.binary("Mul", centred, centred), {2}, true);
    auto const root = call.unary("Sqrt", call.binary("Add", variance, call.graph().real(epsilon)));
    auto found = call.reshape(call.binary("Div", centred, root), shape);
    Shape channels(shape.size() - 1);
    channels[0] = shape[1];
    if (call.has(weight)) {
        found = call.binary("Mul", found, call.reshape(call.tensor(weight), channels));
    }
    if (call.has(weight + 1)) {
        found = call.binary("Add", found, call.reshape(call.tensor(weight + 1), channels));
    }
    call.give(found);
}

void lower_group_norm(LoweredCall& call) {
    norm_of_groups(call, call.whole(1), call.number(4), 2);
}

void lower_instance_norm(LoweredCall& call) {
    if (!call.flag(5)) { // the statistics are those of training
        norm_of_batches(call, 7);
        return;
    }
    norm_of_groups(call, call.shape(call.tensor(0)).at(1).count, call.number(7), 1);
}

} // namespace

Lowerings lower_norms() {
    return {
        {"aten::batch_norm", lower_batch_norm},
        {"aten::_native_batch_norm_legit_no_training",
         [](LoweredCall& call) { norm_of_batches(call, 6); }},
        {"aten::layer_norm", lower_layer_norm},
        {"aten::native_layer_norm", lower_layer_norm},
        {"aten::rms_norm", lower_rms_norm},
        {"aten::group_norm", lower_group_norm},
        {"aten::instance_norm", lower_instance_norm},
    };
}

} // namespace lockstep::lower
