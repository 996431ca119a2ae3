#include "data/augment/entry.hpp"

namespace lockstep::data {

namespace {

/// In the order in which values are stored.
class Noise : public Change {
  public:
    explicit Noise(double deviation) : deviation_(deviation) {}
    void apply(AugmentedSample& sample, SampleDraws& draws) const override {
        auto const values = sample.stored();
        for (std::size_t at = 0; at < values.size(); at += 2) {
            auto const [one, two] = draws.normal();
            values[at] += static_cast<float>(deviation_ * one);
            if (at + 1 < values.size()) {
                values[at + 1] += static_cast<float>(deviation_ * two);
            }
        }
    }

  private:
    double deviation_;
};

/// A factor of the values before they were normalised.
class Gain : public Change {
  public:
    explicit Gain(double decibels) : decibels_(decibels) {}
    void apply(AugmentedSample& sample, SampleDraws& draws) const override {
        auto const factor =
            static_cast<float>(std::pow(10, draws.between(-decibels_, decibels_) / 20));
        sample.show_colours();
        for (auto& value : sample.input().values()) {
            value *= factor;
        }
    }

  private:
    double decibels_;
};

} // namespace

std::unique_ptr<Change> make_noise(Entry const& entry) {
    return std::make_unique<Noise>(entry.number(0, 0, 1e300));
}

std::unique_ptr<Change> make_gain(Entry const& entry) {
    entry.require_scales();
    return std::make_unique<Gain>(entry.number(0, 0, 120));
}

} // namespace lockstep::data
