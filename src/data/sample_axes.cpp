#include "data/sample_axes.hpp"

#include <algorithm>
#include <numeric>

namespace lockstep::data {

std::optional<std::size_t> channel_axis(h5::Shape const& shape) {
    auto const least = std::ranges::min_element(shape);
    bool const found = shape.size() > 2 && (*least == 1 || *least == 3 || *least == 4) &&
                       std::ranges::count(shape, *least) == 1;
    return found ? std::optional(static_cast<std::size_t>(least - shape.begin())) : std::nullopt;
}

std::optional<std::size_t> axis_of_means(Facts const& facts) {
    auto const& shape = facts.inputs.front().shape;
    auto const means = facts.mean.size();
    bool const found = means > 1 && shape.size() > 1 && !facts.inputs.front().ragged &&
                       (means == shape.front()) != (means == shape.back());
    return found ? std::optional(means == shape.front() ? 0 : shape.size() - 1) : std::nullopt;
}

SampleAxes guessed_axes(Facts const& facts) {
    auto const& field = facts.inputs.front();
    auto const& shape = field.shape;
    bool const of_features = !facts.columns.empty() || (facts.sample_rate > 0 && shape.size() == 2);
    SampleAxes axes{{}, of_features, of_features};
    if (field.ragged) {
        axes.places = {0};
    } else if (shape.size() > 1) {
        auto const last = shape.size() - 1;
        auto channels = of_features ? std::optional(last) : axis_of_means(facts);
        if (auto const shown = channel_axis(shape); !channels && (shown == 0 || shown == last)) {
            channels = shown;
        }
        axes.found = channels.has_value();
        if (!channels && shape.size() > 2) {
            channels = 0;
        }
        axes.places.resize(shape.size());
        std::iota(axes.places.begin(), axes.places.end(), std::size_t{0});
        if (channels) {
            std::erase(axes.places, *channels);
        }
    }
    return axes;
}

} // namespace lockstep::data
