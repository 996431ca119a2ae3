#include "data/augment/gamma.hpp"

#include "data/augment/entry.hpp"

#include <algorithm>
#include <cmath>

namespace lockstep::data {

namespace {

class Gamma : public Change {
  public:
    Gamma(double low, double high) : low_(low), high_(high) {}
    void apply(AugmentedSample& sample, SampleDraws& draws) const override {
        adjust_gamma(sample, draws.between_ratios(low_, high_));
    }

  private:
    double low_;
    double high_;
};

} // namespace

void adjust_gamma(AugmentedSample& sample, double power) {
    sample.show_colours();
    auto const values = sample.input().values();
    float low = 0;
    float range = 1;
    if (sample.form().input.type != h5::Type::u8) {
        auto const [min, max] = std::ranges::minmax(values);
        low = min;
        range = max - min + 1e-7F;
    }
    auto const exponent = static_cast<float>(power);
    for (auto& value : values) {
        value = std::pow(std::max((value - low) / range, 0.0F), exponent) * range + low;
    }
}

std::unique_ptr<Change> make_gamma(Entry const& entry) {
    static_cast<void>(entry.picture());
    entry.require_scales();
    auto const low = entry.number(0, 0.01, 100);
    auto const high = entry.number(1, 0.01, 100);
    entry.require_order(low, high);
    return std::make_unique<Gamma>(low, high);
}

} // namespace lockstep::data
