#include "data/sample_axes.hpp"

#include <algorithm>

namespace lockstep::data {

std::optional<std::size_t> channel_axis(h5::Shape const& shape) {
    auto const least = std::ranges::min_element(shape);
    bool const found = shape.size() > 2 && (*least == 1 || *least == 3 || *least == 4) &&
                       std::ranges::count(shape, *least) == 1;
    return found ? std::optional(static_cast<std::size_t>(least - shape.begin())) : std::nullopt;
}

SampleAxes guessed_axes(FieldInfo const& field) {
    auto const& shape = field.shape;
    SampleAxes axes{{}, false};
    if (field.ragged) {
        axes.places = {0};
    } else if (shape.size() > 1) {
        bool const last = channel_axis(shape) == shape.size() - 1;
        for (std::size_t axis = last || shape.size() == 2 ? 0 : 1;
             axis < shape.size() - (last ? 1 : 0); ++axis) {
            axes.places.push_back(axis);
        }
    }
    return axes;
}

} // namespace lockstep::data
