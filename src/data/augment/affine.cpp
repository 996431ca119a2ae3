#include "data/augment/entry.hpp"
#include "data/augment/warp.hpp"

namespace lockstep::data {

namespace {

struct AffineRange {
    double degrees;
    double shift;
    double scale_min;
    double scale_max;
    double shear;
};

class RandomAffine : public Change {
  public:
    explicit RandomAffine(AffineRange const& range) : range_(range) {}
    void apply(AugmentedSample& sample, SampleDraws& draws) const override {
        AffineParts parts{.degrees = draws.between(-range_.degrees, range_.degrees)};
        auto const shift = [&](std::int64_t extent) {
            auto const most = range_.shift * static_cast<double>(extent);
            return std::nearbyint(draws.between(-most, most));
        };
        parts.shift_x = shift(sample.input().width());
        parts.shift_y = shift(sample.input().height());
        parts.scale = draws.between(range_.scale_min, range_.scale_max);
        parts.shear_x = draws.between(-range_.shear, range_.shear);
        warp(sample, inverse_affine(parts));
    }

  private:
    AffineRange range_;
};

} // namespace

std::unique_ptr<Change> make_affine(Entry const& entry) {
    static_cast<void>(entry.picture());
    AffineRange const range{entry.number(0, 0, 360), entry.number(1, 0, 1, 0),
                            entry.number(2, 0.01, 100, 1), entry.number(3, 0.01, 100, 1),
                            entry.number(4, 0, 89, 0)};
    entry.require_order(range.scale_min, range.scale_max);
    return std::make_unique<RandomAffine>(range);
}

} // namespace lockstep::data
