#include "data/augment/entry.hpp"
#include "data/augment/tone.hpp"

#include <functional>

namespace lockstep::data {

namespace {

/// The same change of each picture.
class Tone : public Change {
  public:
    using Function = std::function<void(Picture const& picture, std::vector<float>& work)>;
    explicit Tone(Function change) : change_(std::move(change)) {}
    void apply(AugmentedSample& sample, SampleDraws& /*draws*/) const override {
        for_pictures(sample,
                     [&](Picture const& picture) { change_(picture, sample.buffers().work); });
    }

  private:
    Function change_;
};

std::unique_ptr<Change> tone(Entry const& entry, Tone::Function change) {
    entry.require_colours();
    return std::make_unique<Tone>(std::move(change));
}

} // namespace

std::unique_ptr<Change> make_sharpness(Entry const& entry) {
    auto const factor = static_cast<float>(entry.number(0, 0, 100));
    return tone(entry, [factor](auto const& picture, auto& work) {
        adjust_sharpness(picture, factor, work);
    });
}

std::unique_ptr<Change> make_posterize(Entry const& entry) {
    auto const bits = static_cast<int>(entry.whole(0, 0, 8));
    return tone(entry, [bits](auto const& picture, auto&) { posterize(picture, bits); });
}

std::unique_ptr<Change> make_solarize(Entry const& entry) {
    auto const threshold = static_cast<float>(entry.number(0, 0, 1));
    return tone(entry, [threshold](auto const& picture, auto&) { solarize(picture, threshold); });
}

std::unique_ptr<Change> make_invert(Entry const& entry) {
    return tone(entry, [](auto const& picture, auto&) { invert(picture); });
}

std::unique_ptr<Change> make_autocontrast(Entry const& entry) {
    return tone(entry, [](auto const& picture, auto&) { autocontrast(picture); });
}

std::unique_ptr<Change> make_equalize(Entry const& entry) {
    return tone(entry, [](auto const& picture, auto&) { equalize(picture); });
}

} // namespace lockstep::data
