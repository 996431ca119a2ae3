#include "data/augment/entry.hpp"
#include "data/augment/random_part.hpp"
#include "data/augment/warp.hpp"

namespace lockstep::data {

namespace {

class ResizedCrop : public Change {
  public:
    explicit ResizedCrop(PartRange const& range) : range_(range) {}
    void apply(AugmentedSample& sample, SampleDraws& draws) const override {
        auto const crop =
            random_part(range_, sample.input().height(), sample.input().width(), draws);
        resize(sample,
               crop ? *crop : middle_part(range_, sample.input().height(), sample.input().width()));
    }

  private:
    PartRange range_;
};

} // namespace

std::unique_ptr<Change> make_resized_crop(Entry const& entry) {
    static_cast<void>(entry.picture());
    PartRange const range{entry.number(0, 1e-6, 1, 0.08), entry.number(1, 1e-6, 1, 1),
                          entry.number(2, 0.01, 100, 3.0 / 4), entry.number(3, 0.01, 100, 4.0 / 3)};
    entry.require_order(range.area_min, range.area_max);
    entry.require_order(range.aspect_min, range.aspect_max);
    return std::make_unique<ResizedCrop>(range);
}

} // namespace lockstep::data
