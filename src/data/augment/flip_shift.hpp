#pragma once

#include "data/augment/sample.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace lockstep::data {

/// Reverses the order along a dimension.
template <class Value>
void flip(Grid<Value>& grid, std::size_t axis) {
    auto const inner = grid.stride(axis);
    auto const extent = grid.extent(axis);
    auto const values = grid.values();
    for (auto* first = values.data(); first != values.data() + values.size();
         first += extent * inner) {
        if (inner == 1) {
            std::reverse(first, first + extent);
            continue;
        }
        for (std::int64_t low = 0, high = extent - 1; low < high; ++low, --high) {
            std::swap_ranges(first + low * inner, first + (low + 1) * inner, first + high * inner);
        }
    }
}

/// Moves by `by` places along a dimension; `fill(channel)` or, where `repeats`, the value at the
/// edge comes in.
template <class Value>
void shift(Grid<Value>& grid, std::size_t axis, std::int64_t by, bool repeats) {
    auto const inner = grid.stride(axis);
    auto const extent = grid.extent(axis);
    auto const gone = std::min(std::abs(by), extent) * inner;
    auto const stay = extent * inner - gone;
    auto const values = grid.values();
    if (gone == 0) {
        return;
    }
    auto const fill = [&](Value* first, Value* last, Value const* edge) {
        for (; first != last; first += inner) {
            if (repeats) {
                std::copy(edge, edge + inner, first);
            } else {
                std::fill(first, first + inner, Value{});
            }
        }
    };
    std::vector<Value> edge(static_cast<std::size_t>(inner));
    for (auto* first = values.data(); first != values.data() + values.size();
         first += extent * inner) {
        auto* const end = first + extent * inner;
        auto const* const outermost = by > 0 ? first : end - inner;
        std::copy(outermost, outermost + inner, edge.begin());
        if (by > 0) {
            std::copy_backward(first, first + stay, end);
            fill(first, first + gone, edge.data());
        } else {
            std::copy(first + gone, end, first);
            fill(first + stay, end, edge.data());
        }
    }
}

/// Calls `use` with the target that moves with a sample, and the dimension that is a place of the
/// input there.
template <class Use>
void for_target_axis(AugmentedSample& sample, std::size_t axis, Use use) {
    auto const& places = sample.input().places();
    auto const at = std::ranges::find(places, axis);
    if (at == places.end()) {
        return;
    }
    auto const which = static_cast<std::size_t>(at - places.begin());
    if (sample.real_target) {
        use(*sample.real_target, sample.real_target->places()[which]);
    }
    if (sample.class_target) {
        use(*sample.class_target, sample.class_target->places()[which]);
    }
}

} // namespace lockstep::data
