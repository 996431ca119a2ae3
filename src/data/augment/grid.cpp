#include "data/augment/grid.hpp"

namespace lockstep::data {

namespace {

/// A walk over a sample in another order than its own.
struct Walk {
    std::vector<std::int64_t> extents;
    std::vector<std::int64_t> strides; ///< of the values as stored

    explicit Walk(GridShape const& shape) {
        for (auto const axis : shape.reordered) {
            extents.push_back(shape.extents[axis]);
            std::int64_t stride = 1;
            for (auto at = axis + 1; at < shape.extents.size(); ++at) {
                stride *= shape.extents[at];
            }
            strides.push_back(stride);
        }
    }

    /// Calls `use(row, stored)` with the number of each run along the last dimension, and with
    /// where its first value is stored.
    template <class Use>
    void for_rows(Use use) const {
        std::vector<std::int64_t> at(extents.size(), 0);
        std::int64_t stored = 0;
        std::int64_t rows = 1;
        for (std::size_t i = 0; i + 1 < extents.size(); ++i) {
            rows *= extents[i];
        }
        for (std::int64_t row = 0; row < rows; ++row) {
            use(row, stored);
            for (auto i = extents.size() - 1; i-- > 0;) {
                stored += strides[i];
                if (++at[i] < extents[i]) {
                    break;
                }
                stored -= extents[i] * strides[i];
                at[i] = 0;
            }
        }
    }
};

} // namespace

GridShape::GridShape(std::vector<std::int64_t> stored, std::vector<std::size_t> of_places)
    : extents(std::move(stored)), places(std::move(of_places)) {
    for (std::size_t axis = 0; axis < extents.size(); ++axis) {
        if (std::ranges::count(places, axis) == 0) {
            reordered.push_back(axis);
        }
    }
    reordered.insert(reordered.end(), places.begin(), places.end());
    is_same = std::ranges::is_sorted(reordered);
}

std::int64_t GridShape::places_between(std::size_t first, std::size_t last) const {
    std::int64_t elements = 1;
    for (auto at = first; at < last; ++at) {
        elements *= extents[places[at]];
    }
    return elements;
}

template <class Value>
void Grid<Value>::put_places_last() {
    if (shape_.is_same || is_moved_) {
        return;
    }
    Walk const walk(shape_);
    spare_.resize(stored_.size());
    auto const length = walk.extents.back();
    auto const step = walk.strides.back();
    walk.for_rows([&](std::int64_t row, std::int64_t stored) {
        auto const* const from = stored_.data() + stored;
        auto* const to = spare_.data() + row * length;
        for (std::int64_t i = 0; i < length; ++i) {
            to[i] = from[i * step];
        }
    });
    is_moved_ = true;
}

template <class Value>
void Grid<Value>::put_back() {
    if (!is_moved_) {
        return;
    }
    Walk const walk(shape_);
    auto const length = walk.extents.back();
    auto const step = walk.strides.back();
    walk.for_rows([&](std::int64_t row, std::int64_t stored) {
        auto const* const from = spare_.data() + row * length;
        auto* const to = stored_.data() + stored;
        for (std::int64_t i = 0; i < length; ++i) {
            to[i * step] = from[i];
        }
    });
    is_moved_ = false;
}

template class Grid<float>;
template class Grid<std::int64_t>;

} // namespace lockstep::data
