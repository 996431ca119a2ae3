#include "base/text.hpp"
#include "data/augment/entry.hpp"
#include "data/augment/flip_shift.hpp"
#include "lockstep/h5/storage.hpp"

#include <algorithm>
#include <optional>

namespace lockstep::data {

namespace {

class Flip : public Change {
  public:
    explicit Flip(std::size_t axis) : axis_(axis) {}
    void apply(AugmentedSample& sample, SampleDraws& /*draws*/) const override {
        flip(sample.input(), axis_);
        for_target_axis(sample, axis_, [](auto& target, std::size_t axis) { flip(target, axis); });
    }

  private:
    std::size_t axis_;
};

std::size_t flipped_axis(Entry const& entry, std::optional<std::int64_t> wanted) {
    auto const& axes = entry.form().axes;
    auto const& places = axes.places;
    auto const dimensions = entry.form().dimensions();
    if (!wanted && places.empty()) {
        entry.refuse("a sample is a row of features, which has no mirror image",
                     "Leave out flip, or write flip:0 if the values of a sample are a series");
    }
    if (!wanted && places.size() == 1 && dimensions > 1) {
        entry.refuse("the last dimension of a sample holds features, which have no mirror image",
                     "Leave out flip, or write flip:0 to reverse the rows of samples");
    }
    auto const axis = wanted ? static_cast<std::size_t>(*wanted) : places.back();
    if (axis >= dimensions) {
        entry.refuse(
            concat("a sample has no such dimension (it has ", dimensions, ", numbered from 0)"),
            "Write flip, or a smaller number");
    }
    if (axes.found && std::ranges::count(places, axis) == 0) {
        std::vector<std::string> others;
        for (auto const place : places) {
            others.push_back(concat("flip:", place));
        }
        bool const of_channels = places.size() > 1;
        entry.refuse(
            concat("dimension ", axis, " of a sample of shape ",
                   h5::shape_text(entry.form().input.shape), " holds ",
                   of_channels
                       ? concat("the channels (", entry.form().layout_text(), "), which have")
                       : std::string("features, which have"),
                   " no mirror image"),
            others.empty() ? "Leave out flip"
                           : concat("Write ", joined(others, " or "),
                                    of_channels && axes.known
                                        ? "; if the samples are stored otherwise, set model.layout"
                                        : ""));
    }
    return axis;
}

} // namespace

std::unique_ptr<Change> make_flip(Entry const& entry) {
    std::optional<std::int64_t> axis;
    if (entry.has(0)) {
        axis = entry.whole(0, 0, 1e9);
    }
    return std::make_unique<Flip>(flipped_axis(entry, axis));
}

} // namespace lockstep::data
