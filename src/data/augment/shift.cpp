#include "data/augment/entry.hpp"
#include "data/augment/flip_shift.hpp"

namespace lockstep::data {

namespace {

class Shift : public Change {
  public:
    Shift(std::vector<std::size_t> axes, std::int64_t places, bool repeats)
        : axes_(std::move(axes)), places_(places), repeats_(repeats) {}

    void apply(AugmentedSample& sample, SampleDraws& draws) const override {
        sample.stored(); // 0 is what is blank once it is normalised
        for (auto const axis : axes_) {
            auto const by = draws.below(2 * places_ + 1) - places_;
            shift(sample.input(), axis, by, repeats_);
            for_target_axis(sample, axis, [&](auto& target, std::size_t of_target) {
                shift(target, of_target, by, repeats_);
            });
        }
    }

  private:
    std::vector<std::size_t> axes_;
    std::int64_t places_;
    bool repeats_;
};

} // namespace

std::unique_ptr<Change> make_crop(Entry const& entry) {
    auto const by = entry.whole(0, 0, 1e9);
    auto const& places = entry.form().axes.places;
    if (places.empty()) {
        entry.refuse("a sample is a row of features, which cannot be shifted", "Leave out crop");
    }
    std::vector<std::size_t> const axes(
        places.end() - std::min<std::ptrdiff_t>(std::ssize(places), 2), places.end());
    return std::make_unique<Shift>(axes, by, false);
}

std::unique_ptr<Change> make_shift(Entry const& entry) {
    return std::make_unique<Shift>(std::vector{entry.time()}, entry.whole(0, 0, 1e9), true);
}

} // namespace lockstep::data
