#include <algorithm>
#include <limits>
#include <numeric>

#include "lowered_call.hpp"

namespace lockstep::lower {

namespace {

using Id = GraphParts::Id;

std::size_t rank_of(LoweredCall& call, Id id) {
    return call.shape(id).size();
}

void lower_reshape(LoweredCall& call) {
    call.give(call.reshape(call.tensor(0), call.result_shape()));
}

void lower_permute(LoweredCall& call) {
    auto const x = call.tensor(0);
    auto order = call.wholes_of(1);
    for (auto& axis : order) {
        axis = axis < 0 ? axis + static_cast<std::int64_t>(rank_of(call, x)) : axis;
    }
    call.give(call.transpose(x, order));
}

void lower_transpose(LoweredCall& call) {
    auto const x = call.tensor(0);
    std::vector<std::int64_t> order(rank_of(call, x));
    std::iota(order.begin(), order.end(), 0);
    if (call.arguments() > 1) {
        std::swap(order[static_cast<std::size_t>(call.axis(1, order.size()))],
                  order[static_cast<std::size_t>(call.axis(2, order.size()))]);
    } else if (order.size() == 2) {
        std::swap(order[0], order[1]);
    }
    call.give(call.transpose(x, order));
}

void lower_expand(LoweredCall& call) {
    call.give(call.expanded(call.tensor(0), call.result_shape()));
}

void lower_select(LoweredCall& call) {
    auto const x = call.tensor(0);
    auto const axis = call.axis(1, rank_of(call, x));
    call.require_own(x, axis);
    auto const count = call.shape(x)[static_cast<std::size_t>(axis)].count;
    auto const given = call.whole(2);
    auto const at = given < 0 ? given + count : given;
    call.give(call.reshape(call.slice(x, axis, at, at + 1), call.result_shape()));
}

void lower_slice(LoweredCall& call) {
    auto const x = call.tensor(0);
    auto const axis = call.axis(1, rank_of(call, x));
    auto const start = call.has(2) ? call.whole(2) : 0;
    if (call.shape(x) == call.result_shape() && start == 0) { // whatever the end is
        call.give(x);
        return;
    }
    auto const end = call.has(3) ? call.whole(3) : std::numeric_limits<std::int64_t>::max();
    call.give(call.slice(x, axis, start, end, call.has(4) ? call.whole(4) : 1));
}

void lower_cat(LoweredCall& call) {
    auto parts = call.tensors(0);
    auto const rank = call.result_shape().size();
    std::erase_if(parts, [&](Id id) { return deploy::elements(call.shape(id)) == 0; });
    for (auto& part : parts) {
        part = call.cast(part, call.result_element());
    }
    call.give(call.join(parts, call.axis(1, rank)));
}

void lower_stack(LoweredCall& call) {
    auto const rank = call.result_shape().size();
    auto const axis = call.axis(1, rank);
    std::vector<Id> parts;
    for (auto const id : call.tensors(0)) {
        auto wider = call.shape(id);
        wider.insert(wider.begin() + axis, deploy::Extent{});
        parts.push_back(call.reshape(id, wider));
    }
    call.give(call.join(parts, axis));
}

/// Parts one after the other along an axis, as long as the results say.
void divide_along(LoweredCall& call, std::int64_t axis, bool squeezed) {
    auto const x = call.tensor(0);
    call.require_own(x, axis);
    std::int64_t start = 0;
    for (std::size_t i = 0; i < call.results(); ++i) {
        auto const shape = call.result_shape(i);
        auto const count = squeezed ? 1 : shape[static_cast<std::size_t>(axis)].count;
        call.give(call.reshape(call.slice(x, axis, start, start + count), shape));
        start += count;
    }
}

void lower_split(LoweredCall& call) {
    divide_along(call, call.axis(2, call.shape(call.tensor(0)).size()), false);
}

void lower_unbind(LoweredCall& call) {
    divide_along(call, call.axis(1, call.shape(call.tensor(0)).size()), true);
}

void lower_repeat_interleave(LoweredCall& call) {
    auto const x = call.tensor(0);
    if (call.is_tensor(1) || !call.has(2)) {
        call.refuse("only a fixed number of repeats along a named dimension is supported");
    }
    auto const axis = call.axis(2, rank_of(call, x));
    std::vector<std::int64_t> indices;
    for (std::int64_t i = 0; i < call.shape(x)[static_cast<std::size_t>(axis)].count; ++i) {
        indices.insert(indices.end(), static_cast<std::size_t>(call.whole(1)), i);
    }
    call.give(call.gather(x, call.wholes(indices), axis));
}

void lower_pad(LoweredCall& call) {
    auto x = call.cast(call.tensor(0), deploy::Element::f32);
    auto const rank = rank_of(call, x);
    auto const given = call.wholes_of(1); // from the last axis on: before, after
    std::vector<std::int64_t> pads(2 * rank);
    for (std::size_t i = 0; i + 1 < given.size(); i += 2) {
        auto const axis = rank - 1 - i / 2;
        pads[axis] = std::max(given[i], std::int64_t{0});
        pads[axis + rank] = std::max(given[i + 1], std::int64_t{0});
        auto const end = call.shape(x)[axis].count + std::min(given[i + 1], std::int64_t{0});
        if (given[i] < 0 || given[i + 1] < 0) {
            auto const start = std::max(-given[i], std::int64_t{0});
            x = call.slice(x, static_cast<std::int64_t>(axis), start, end);
        }
    }
    auto const found = call.padded(x, pads, call.has(2) ? call.number(2) : 0.0);
    call.give(call.cast(found, call.result_element()));
}

/// Entries of each axis over and over, new axes before.
void lower_repeat(LoweredCall& call) {
    auto x = call.tensor(0);
    auto wider = call.shape(x);
    auto const times = call.result_shape();
    wider.insert(wider.begin(), times.size() - wider.size(), deploy::Extent{});
    x = call.reshape(x, wider);
    for (std::size_t axis = 0; axis < wider.size(); ++axis) {
        if (wider[axis] == times[axis] || wider[axis] == deploy::Extent{}) {
            continue; // else `give` expands it
        }
        std::vector<std::int64_t> places;
        for (std::int64_t at = 0; at < times[axis].count; ++at) {
            places.push_back(at % wider[axis].count);
        }
        x = call.gather(x, call.wholes(places), static_cast<std::int64_t>(axis));
    }
    call.give(x);
}

/// Channels become places: [n, c r², h, w] to [n, c, h r, w r].
void lower_pixel_shuffle(LoweredCall& call) {
    auto const factor = call.whole(1);
    auto const x = call.tensor(0);
    auto const shape = call.shape(x);
    if (shape.size() != 4) {
        call.refuse("its input has no batch dimension");
    }
    auto const split = call.reshape(x, {shape[0],
                                        {shape[1].count / factor / factor, false},
                                        {factor, false},
                                        {factor, false},
                                        shape[2],
                                        shape[3]});
    call.give(call.reshape(call.transpose(split, {0, 1, 4, 2, 5, 3}), call.result_shape()));
}

void lower_pixel_unshuffle(LoweredCall& call) {
    if (call.result_shape().size() != 4) {
        call.refuse("its input has no batch dimension");
    }
    auto const factor = call.whole(1);
    auto const x = call.tensor(0);
    auto const to = call.result_shape();
    auto const split =
        call.reshape(x, {to[0], call.shape(x)[1], to[2], {factor, false}, to[3], {factor, false}});
    call.give(call.reshape(call.transpose(split, {0, 1, 3, 5, 2, 4}), to));
}

/// The first channels of all groups, then the second, and so on.
void lower_channel_shuffle(LoweredCall& call) {
    auto const x = call.tensor(0);
    auto const groups = call.whole(1);
    auto const shape = call.shape(x);
    auto const behind = deploy::elements(shape) / shape[0].count / shape[1].count;
    auto const split = call.reshape(
        x, {shape[0], {groups, false}, {shape[1].count / groups, false}, {behind, false}});
    call.give(call.reshape(call.transpose(split, {0, 2, 1, 3}), shape));
}

void lower_cumsum(LoweredCall& call) {
    auto const x = call.cast(call.tensor(0), call.result_element());
    auto const axis = call.axis(1, rank_of(call, x));
    call.require_own(x, axis);
    call.give(call.unary("CumSum", x, {{"axis", axis}}));
}

} // namespace

Lowerings lower_shapes() {
    Lowerings table{
        {"aten::permute", lower_permute},
        {"aten::transpose", lower_transpose},
        {"aten::t", lower_transpose},
        {"aten::expand", lower_expand},
        {"aten::expand_as", lower_expand},
        {"aten::select", lower_select},
        {"aten::slice", lower_slice},
        {"aten::cat", lower_cat},
        {"aten::stack", lower_stack},
        {"aten::chunk", lower_split},
        {"aten::split", lower_split},
        {"aten::split_with_sizes", lower_split},
        {"aten::unbind", lower_unbind},
        {"aten::repeat_interleave", lower_repeat_interleave},
        {"aten::constant_pad_nd", lower_pad},
        {"aten::repeat", lower_repeat},
        {"aten::pixel_shuffle", lower_pixel_shuffle},
        {"aten::pixel_unshuffle", lower_pixel_unshuffle},
        {"aten::channel_shuffle", lower_channel_shuffle},
        {"aten::native_channel_shuffle", lower_channel_shuffle},
        {"aten::cumsum", lower_cumsum},
        {"aten::dropout",
         [](LoweredCall& call) {
             if (call.flag(2) && call.number(1) != 0) {
                 call.refuse_dropout();
             }
             call.give(call.tensor(0));
         }},
    };
    for (auto const* const name : {"view", "reshape", "_unsafe_view", "flatten", "unflatten",
                                   "unsqueeze", "squeeze", "view_as", "reshape_as"}) {
        table[std::string("aten::") + name] = lower_reshape;
    }
    return table;
}

} // namespace lockstep::lower
