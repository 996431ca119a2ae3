#include "data/augment/sample_form.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <numeric>

namespace lockstep::data {

std::int64_t SampleForm::channels() const {
    std::int64_t channels = 1;
    for (std::size_t at = 0; at < input.shape.size(); ++at) {
        auto const axis = at + (input.ragged ? 1 : 0);
        channels *= std::ranges::count(axes.places, axis) == 0
                        ? static_cast<std::int64_t>(input.shape[at])
                        : 1;
    }
    return channels;
}

std::optional<std::size_t> SampleForm::channel_axis() const {
    std::optional<std::size_t> found;
    for (std::size_t axis = 0; axis < dimensions(); ++axis) {
        if (std::ranges::count(axes.places, axis) == 0) {
            if (found) {
                return std::nullopt;
            }
            found = axis;
        }
    }
    return found;
}

std::string SampleForm::layout_text() const {
    auto const axis = channel_axis();
    if (!axis || (*axis != 0 && *axis + 1 != dimensions())) {
        return {};
    }
    return concat(*axis == 0 ? "channels-first" : "channels-last",
                  axes.known   ? " by model.layout"
                  : axes.found ? " by its elements or by mean and std"
                               : ", as nothing tells");
}

bool SampleForm::scales_fit() const {
    return mean.size() <= 1 || channel_axis() == (channels_last ? dimensions() - 1 : 0);
}

std::optional<std::vector<std::size_t>> places_of(h5::Shape const& target, FieldInfo const& input,
                                                  SampleAxes const& axes) {
    if (input.ragged) {
        return std::nullopt;
    }
    h5::Shape wanted;
    for (auto const place : axes.places) {
        wanted.push_back(input.shape[place]);
    }
    auto const from = [&](std::size_t first) {
        std::vector<std::size_t> found(wanted.size());
        std::iota(found.begin(), found.end(), first);
        return found;
    };
    if (target == wanted) {
        return from(0);
    }
    if (wanted.empty() || target.size() != wanted.size() + 1) {
        return std::nullopt;
    }
    bool const at_end = std::equal(wanted.begin(), wanted.end(), target.begin());
    bool const at_front = std::equal(wanted.begin(), wanted.end(), target.begin() + 1);
    bool const last = at_end && (!at_front || axes.places.front() == 0);
    return last ? std::optional(from(0)) : at_front ? std::optional(from(1)) : std::nullopt;
}

} // namespace lockstep::data
