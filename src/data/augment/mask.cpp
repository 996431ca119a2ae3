#include "base/text.hpp"
#include "data/augment/entry.hpp"

#include <algorithm>

namespace lockstep::data {

namespace {

class Mask : public Change {
  public:
    Mask(std::vector<std::size_t> axes, std::int64_t rows, std::int64_t columns)
        : axes_(std::move(axes)), rows_(rows), columns_(columns) {}

    void apply(AugmentedSample& sample, SampleDraws& draws) const override {
        sample.stored(); // 0 is what is blank once it is normalised
        mask(sample.input(), axes_[0], rows_, draws);
        mask(sample.input(), axes_[1], columns_, draws);
    }

  private:
    /// Zeros in a run of up to `max` along a dimension.
    static void mask(Grid<float>& grid, std::size_t axis, std::int64_t max, SampleDraws& draws) {
        auto const inner = grid.stride(axis);
        auto const extent = grid.extent(axis);
        auto const length = std::min(draws.below(max + 1), extent);
        auto const begin = draws.below(extent - length + 1);
        auto const values = grid.values();
        for (auto* first = values.data(); first != values.data() + values.size();
             first += extent * inner) {
            std::fill(first + begin * inner, first + (begin + length) * inner, 0.0F);
        }
    }

    std::vector<std::size_t> axes_;
    std::int64_t rows_;
    std::int64_t columns_;
};

} // namespace

std::unique_ptr<Change> make_mask(Entry const& entry) {
    auto const& form = entry.form();
    auto axes = form.axes.places;
    if (form.dimensions() == 2) {
        axes = {0, 1};
    } else if (axes.size() != 2) {
        entry.refuse(concat("a mask needs samples of rows and columns, but a sample has ",
                            amount_of(form.dimensions(), "dimension")),
                     "Leave out mask");
    }
    return std::make_unique<Mask>(std::move(axes), entry.whole(0, 0, 1e9), entry.whole(1, 0, 1e9));
}

} // namespace lockstep::data
