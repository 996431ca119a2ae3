#include "data/augment/entry.hpp"
#include "data/augment/random_part.hpp"

#include <algorithm>

namespace lockstep::data {

namespace {

/// Random erasing (Zhong et al., arXiv 1708.04896), the same part in all channels.
class Erase : public Change {
  public:
    explicit Erase(PartRange const& range) : range_(range) {}
    void apply(AugmentedSample& sample, SampleDraws& draws) const override {
        auto& grid = sample.input();
        grid.put_places_last();
        auto const part = random_part(range_, grid.height(), grid.width(), draws);
        for (std::int64_t channel = 0; part && channel < grid.channels(); ++channel) {
            for (std::int64_t depth = 0; depth < grid.depth(); ++depth) {
                for (auto y = part->top; y < part->top + part->height; ++y) {
                    auto* const row = grid.plane(channel, depth) + y * grid.width() + part->left;
                    std::fill(row, row + part->width, sample.blank(channel));
                }
            }
        }
    }

  private:
    PartRange range_;
};

} // namespace

std::unique_ptr<Change> make_erase(Entry const& entry) {
    static_cast<void>(entry.picture());
    PartRange const range{entry.number(0, 1e-6, 1, 0.02), entry.number(1, 1e-6, 1, 0.33), 0.3,
                          1 / 0.3};
    entry.require_order(range.area_min, range.area_max);
    return std::make_unique<Erase>(range);
}

} // namespace lockstep::data
