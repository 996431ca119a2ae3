#include <algorithm>
#include <array>
#include <numeric>

#include "lowered_call.hpp"

namespace lockstep::lower {

namespace {

using deploy::Element;
using deploy::Shape;
using Id = GraphParts::Id;
using Wholes = std::vector<std::int64_t>;

/// Indices that may count from the end.
Id from_front(LoweredCall& call, Id indices, std::int64_t count) {
    if (call[indices].constant) {
        auto const given = call[indices].wholes();
        if (std::ranges::none_of(given, [](std::int64_t each) { return each < 0; })) {
            return indices;
        }
        Wholes values(given.begin(), given.end());
        for (auto& each : values) {
            each += each < 0 ? count : 0;
        }
        return call.wholes(values, deploy::extents_of(call.shape(indices)));
    }
    auto const below = call.compare("Less", indices, call.graph().whole(0));
    return call.where(below, call.binary("Add", indices, call.graph().whole(count)), indices);
}

/// One index into axes that became one, of an index into each.
Id combined(LoweredCall& call, std::vector<Id> const& indices, Shape const& axes) {
    auto all = from_front(call, indices.front(), axes.front().count);
    for (std::size_t i = 1; i < indices.size(); ++i) {
        auto const next = from_front(call, indices[i], axes[i].count);
        all = call.binary("Add", call.binary("Mul", all, call.graph().whole(axes[i].count)), next);
    }
    return all;
}

/// For each value of a mask that is true, where it is along each axis.
std::vector<Id> places_in(LoweredCall& call, Id mask) {
    if (!call[mask].constant) {
        call.refuse("which values its mask takes depends on the inputs");
    }
    auto const extents = deploy::extents_of(call.shape(mask));
    std::vector<Wholes> places(extents.size());
    auto const values = call[mask].values;
    for (std::size_t at = 0; at < values.size(); ++at) {
        auto rest = static_cast<std::int64_t>(at);
        for (auto axis = extents.size(); axis-- > 0 && values[at] != std::byte{0};) {
            places[axis].push_back(rest % extents[axis]);
            rest /= extents[axis];
        }
    }
    std::vector<Id> found;
    for (auto const& each : places) {
        found.push_back(call.wholes(each));
    }
    return found;
}

/// Takes from each sample the entries that its own indices name: x is [samples, entries, …], and
/// indices [samples, …].
Id of_each_sample(LoweredCall& call, Id x, Id indices) {
    auto const from = call.shape(x);
    auto const to = call.result_shape();
    auto const rest = std::accumulate(
        from.begin() + 2, from.end(), std::int64_t{1},
        [](std::int64_t product, deploy::Extent const& extent) { return product * extent.count; });
    auto const each = deploy::elements(to) / to.front().count / rest;
    auto own = call.shape(indices);
    own.insert(own.begin(), to.size() - (from.size() - 2) - own.size(), deploy::Extent{});
    indices = call.expanded(call.reshape(indices, own),
                            Shape(to.begin(), to.begin() + static_cast<long>(own.size())));
    Shape const wide{to.front(), {each, false}, {rest, false}};
    indices = call.expanded(call.reshape(indices, {to.front(), {each, false}, {1, false}}), wide);
    auto const flat = call.reshape(x, {from[0], from[1], {rest, false}});
    auto const found = call.graph().add("GatherElements", {flat, indices}, {call[x].element, wide},
                                        {{"axis", std::int64_t{1}}});
    return call.reshape(found, to);
}

/// x[i, :, j, …]: an index for some of the axes. Where these are not next to each other, what they
/// found comes first.
void lower_index(LoweredCall& call) {
    auto const x = call.tensor(0);
    auto const rank = call.shape(x).size();
    std::vector<std::size_t> axes;
    std::vector<Id> indices;
    bool each_sample = false;
    std::size_t axis = 0;
    for (auto const& item : call.items(1)) {
        if (item.is_there && item.counts_samples && axis == 0 &&
            call.shape(x).front() == deploy::Extent{1, true}) {
            each_sample = true;
        } else if (item.counts_samples) {
            call.refuse("its index counts the samples of a batch along another axis");
        } else if (item.is_there) {
            auto const found = call[item.tensor].element == Element::boolean
                                   ? places_in(call, item.tensor)
                                   : std::vector<Id>{call.cast(item.tensor, Element::i64)};
            for (auto const index : found) {
                axes.push_back(axis++);
                indices.push_back(index);
            }
            continue;
        }
        ++axis;
    }
    if (axes.empty()) {
        call.refuse("it takes the samples of a batch themselves");
    }
    auto const first = each_sample ? 1 : static_cast<std::ptrdiff_t>(axes.front());
    Wholes order; // the axes with an index are moved together
    for (std::size_t at = 0; at < rank; ++at) {
        if (std::ranges::count(axes, at) == 0) {
            order.push_back(static_cast<std::int64_t>(at));
        }
    }
    order.insert(order.begin() + first, axes.begin(), axes.end());
    auto const turned = call.transpose(x, order);
    auto const end = first + static_cast<std::ptrdiff_t>(axes.size());
    auto const shape = call.shape(turned);
    Shape const taken(shape.begin() + first, shape.begin() + end);
    auto const one = call.reshape(turned, [&] {
        Shape merged(shape.begin(), shape.begin() + first);
        merged.push_back({deploy::elements(taken), false});
        merged.insert(merged.end(), shape.begin() + end, shape.end());
        return merged;
    }());
    for (auto at = first; at < end; ++at) {
        call.require_own(turned, at);
    }
    auto const index = combined(call, indices, taken);
    if (each_sample) {
        call.give(of_each_sample(call, one, index));
        return;
    }
    auto found = call.gather(one, index, first);
    if (axes.back() - axes.front() + 1 != axes.size()) {
        auto const many = static_cast<std::int64_t>(call.shape(index).size());
        Wholes back;
        for (std::int64_t at = 0; at < static_cast<std::int64_t>(call.shape(found).size()); ++at) {
            back.push_back(at < many ? first + at : at < first + many ? at - many : at);
        }
        found = call.transpose(found, back);
    }
    call.give(found);
}

void lower_index_select(LoweredCall& call) { // (self, axis, indices)
    auto const x = call.tensor(0);
    auto const axis = call.axis(1, call.shape(x).size());
    call.give(call.gather(x, call.cast(call.tensor(2), Element::i64), axis));
}

void lower_embedding(LoweredCall& call) {
    call.give(call.gather(call.tensor(0), call.cast(call.tensor(1), Element::i64), 0));
}

/// (table, indices, offsets, …, mode 4, …, weights 6, …, padding 8): bags of one size, one a
/// sample.
void lower_bags(LoweredCall& call) {
    auto const wide = call.result_shape(); // [n, width]
    auto indices = call.cast(call.tensor(1), Element::i64);
    auto const flat = call.shape(indices);
    auto const each = flat.size() == 1 ? flat.front().count / wide.front().count : 0;
    bool const counts =
        !call.has(8) || call.whole(8) < 0; // all of them: those of padding would be left out
    auto const offsets = call.given().at(2).toTensor();
    bool const alike = each > 0 && flat.front().batch && wide.front().batch &&
                       torch::equal(offsets, torch::arange(offsets.numel()) * each);
    if (!alike || !counts) {
        call.refuse("its bags differ in size, or leave out padding");
    }
    indices = call.reshape(indices, {wide.front(), {each, false}});
    auto found = call.gather(call.tensor(0), indices, 0);
    if (call.has(6)) {
        found = call.binary("Mul", found,
                            call.reshape(call.tensor(6), {wide.front(), {each, false}, {}}));
    }
    static constexpr std::array<char const*, 3> kinds{"ReduceSum", "ReduceMean", "ReduceMax"};
    call.give(call.reduce(kinds.at(static_cast<std::size_t>(call.whole(4))), found, {1}, false));
    call.give_nothing_more();
}

void lower_one_hot(LoweredCall& call) { // (self, classes)
    auto const x = call.tensor(0);
    auto const classes = call.whole(1);
    if (classes < 0) {
        call.refuse("its number of classes depends on the inputs");
    }
    Wholes numbers(static_cast<std::size_t>(classes));
    std::iota(numbers.begin(), numbers.end(), 0);
    auto wider = call.shape(x);
    wider.push_back({});
    auto const is = call.compare("Equal", call.reshape(x, wider), call.wholes(numbers));
    call.give(call.cast(is, call.result_element()));
}

/// With the batch along the same axes as another tensor, where it has one entry for all samples.
Id for_all_samples(LoweredCall& call, Id x, Shape const& other) {
    auto shape = call.shape(x);
    for (std::size_t at = 0; at < shape.size(); ++at) {
        if (other[at].batch) {
            shape[at] = other[at];
        }
    }
    return call.expanded(x, shape);
}

void lower_gather(LoweredCall& call) { // (self, axis, indices)
    auto const to = call.result_shape();
    auto const x = for_all_samples(call, call.tensor(0), to);
    auto const axis = call.axis(1, to.size());
    call.require_own(x, axis);
    auto const indices = call.expanded(call.cast(call.tensor(2), Element::i64), to);
    call.give(
        call.graph().add("GatherElements", {x, indices}, {call[x].element, to}, {{"axis", axis}}));
}

/// (self, axis, indices, values or one value): they replace those of self, or are added.
Lowering scatter(bool adds) {
    return [adds](LoweredCall& call) {
        auto const element = call.result_element();
        auto const to = call.result_shape();
        auto const axis = call.axis(1, to.size());
        auto const x = call.expanded(call.operand(0, element), to);
        call.require_own(x, axis);
        auto const indices = for_all_samples(call, call.cast(call.tensor(2), Element::i64), to);
        auto const wanted = call.shape(indices);
        auto values = call.operand(3, element);
        for (std::size_t at = 0; at < call.shape(values).size(); ++at) { // those with an index
            if (!wanted[at].batch && call.shape(values)[at].count > wanted[at].count) {
                values = call.slice(values, static_cast<std::int64_t>(at), 0, wanted[at].count);
            }
        }
        call.give(call.graph().add("ScatterElements", {x, indices, call.expanded(values, wanted)},
                                   {element, to},
                                   {{"axis", axis}, {"adds", std::int64_t{adds ? 1 : 0}}}));
    };
}

} // namespace

Lowerings lower_indexing() {
    return {
        {"aten::index", lower_index},         {"aten::index_select", lower_index_select},
        {"aten::embedding", lower_embedding}, {"aten::gather", lower_gather},
        {"aten::one_hot", lower_one_hot},     {"aten::embedding_bag", lower_bags},
        {"aten::scatter", scatter(false)},    {"aten::scatter_add", scatter(true)},
    };
}

} // namespace lockstep::lower
