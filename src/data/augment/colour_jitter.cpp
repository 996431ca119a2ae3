#include "data/augment/colour.hpp"
#include "data/augment/entry.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace lockstep::data {

namespace {

/// Changes of brightness, contrast, saturation and hue by up to these, in random order.
class ColourJitter : public Change {
  public:
    explicit ColourJitter(std::array<double, 4> const& strengths) : strengths_(strengths) {}
    void apply(AugmentedSample& sample, SampleDraws& draws) const override {
        std::array<std::size_t, 4> order{0, 1, 2, 3};
        for (std::size_t last = 3; last > 0; --last) {
            auto const other = draws.below(static_cast<std::int64_t>(last) + 1);
            std::swap(order[last], order[static_cast<std::size_t>(other)]);
        }
        std::array<float, 4> factors{};
        for (std::size_t which = 0; which < factors.size(); ++which) {
            auto const middle = which == 3 ? 0.0 : 1.0;
            auto const low = middle - strengths_[which];
            factors[which] = static_cast<float>(
                draws.between(which == 3 ? low : std::max(low, 0.0), middle + strengths_[which]));
        }
        for_pictures(sample, [&](Picture const& picture) {
            for (auto const which : order) {
                if (strengths_[which] > 0) {
                    adjust(picture, which, factors[which]);
                }
            }
        });
    }

  private:
    static void adjust(Picture const& picture, std::size_t which, float factor) {
        constexpr std::array functions{adjust_brightness, adjust_contrast, adjust_saturation,
                                       adjust_hue};
        functions[which](picture, factor);
    }

    std::array<double, 4> strengths_;
};

class Gray : public Change {
  public:
    void apply(AugmentedSample& sample, SampleDraws& /*draws*/) const override {
        for_pictures(sample, [](Picture const& picture) { make_gray(picture); });
    }
};

} // namespace

std::unique_ptr<Change> make_colour(Entry const& entry) {
    entry.require_colours();
    return std::make_unique<ColourJitter>(
        std::array{entry.number(0, 0, 100), entry.number(1, 0, 100, 0), entry.number(2, 0, 100, 0),
                   entry.number(3, 0, 0.5, 0)});
}

std::unique_ptr<Change> make_gray(Entry const& entry) {
    entry.require_colours();
    return std::make_unique<Gray>();
}

} // namespace lockstep::data
