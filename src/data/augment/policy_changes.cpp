#include "data/augment/entry.hpp"
#include "data/augment/policy.hpp"

namespace lockstep::data {

namespace {

class RandAugment : public Change {
  public:
    RandAugment(std::int64_t changes, std::int64_t magnitude)
        : changes_(changes), magnitude_(magnitude) {}
    void apply(AugmentedSample& sample, SampleDraws& draws) const override {
        for (std::int64_t i = 0; i < changes_; ++i) {
            auto const change = static_cast<std::size_t>(draws.below(std::ssize(policy_changes)));
            auto const sign = draws.uniform() < 0.5 ? -1 : 1;
            apply_policy_change(sample, change, rand_augment, magnitude_, sign);
        }
    }

  private:
    std::int64_t changes_;
    std::int64_t magnitude_;
};

class TrivialAugment : public Change {
  public:
    void apply(AugmentedSample& sample, SampleDraws& draws) const override {
        auto const change = static_cast<std::size_t>(draws.below(std::ssize(policy_changes)));
        auto const magnitude = draws.below(31);
        auto const sign = draws.uniform() < 0.5 ? -1 : 1;
        apply_policy_change(sample, change, trivial_augment, magnitude, sign);
    }
};

} // namespace

std::unique_ptr<Change> make_randaugment(Entry const& entry) {
    entry.require_colours();
    return std::make_unique<RandAugment>(entry.has(0) ? entry.whole(0, 1, 100) : 2,
                                         entry.has(1) ? entry.whole(1, 0, 30) : 9);
}

std::unique_ptr<Change> make_trivialaugment(Entry const& entry) {
    entry.require_colours();
    return std::make_unique<TrivialAugment>();
}

} // namespace lockstep::data
