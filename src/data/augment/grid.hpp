#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::data {

/// The order in which the dimensions of a sample lie, as stored, or with its places last.
struct GridShape {
    std::vector<std::int64_t> extents;  ///< as stored
    std::vector<std::size_t> places;    ///< in space or time
    std::vector<std::size_t> reordered; ///< all dimensions, the places last
    bool is_same = true;                ///< that is how they are stored

    GridShape(std::vector<std::int64_t> stored, std::vector<std::size_t> of_places);
    /// Elements of the dimensions from the `first` to before the `last` of the places.
    std::int64_t places_between(std::size_t first, std::size_t last) const;
};

/// The values of a sample with a position in space or time, stored in any layout.
template <class Value>
class Grid {
  public:
    /// `spare` holds the values while they lie in another order.
    Grid(std::span<Value> stored, GridShape const& shape, std::vector<Value>& spare)
        : stored_(stored), shape_(shape), spare_(spare) {}

    std::span<Value> values() { return is_moved_ ? std::span<Value>(spare_) : stored_; }
    std::int64_t size() const { return static_cast<std::int64_t>(stored_.size()); }
    std::vector<std::size_t> const& places() const { return shape_.places; }
    std::int64_t extent(std::size_t axis) const { return shape_.extents[axis]; }
    /// Values between two neighbours along a dimension, in the present order.
    std::int64_t stride(std::size_t axis) const {
        std::int64_t stride = 1;
        if (is_moved_) {
            for (auto at = shape_.reordered.size(); shape_.reordered[--at] != axis;) {
                stride *= shape_.extents[shape_.reordered[at]];
            }
        } else {
            for (auto at = axis + 1; at < shape_.extents.size(); ++at) {
                stride *= shape_.extents[at];
            }
        }
        return stride;
    }

    /// Puts channels first, and then the places.
    void put_places_last();
    /// Puts the values back as they are stored.
    void put_back();

    // Of a grid with its places last:
    std::int64_t width() const { return place_from_end(1); }
    std::int64_t height() const { return place_from_end(2); }
    /// Pictures of a clip or a volume.
    std::int64_t depth() const {
        auto const count = shape_.places.size();
        return count > 2 ? shape_.places_between(0, count - 2) : 1;
    }
    std::int64_t channels() const {
        auto const places = shape_.places_between(0, shape_.places.size());
        return places == 0 ? 0 : size() / places;
    }
    /// A channel of a picture: `height()` rows of `width()`.
    Value* plane(std::int64_t channel, std::int64_t at_depth = 0) {
        return values().data() + (channel * depth() + at_depth) * height() * width();
    }

  private:
    std::int64_t place_from_end(std::size_t which) const {
        auto const& places = shape_.places;
        return places.size() < which ? 1 : shape_.extents[places[places.size() - which]];
    }

    std::span<Value> stored_;
    GridShape const& shape_;
    std::vector<Value>& spare_;
    bool is_moved_ = false;
};

extern template class Grid<float>;
extern template class Grid<std::int64_t>;

} // namespace lockstep::data
