#include "rl/environment_set.hpp"

#include <array>
#include <limits>

#include "catch.hpp"
#include "error_of.hpp"

using namespace lockstep;
using namespace lockstep::rl;

namespace {

/// Ends after three steps, or continues for ever; its rewards are the actions.
class Counter : public Environment {
  public:
    explicit Counter(bool ends) : ends_(ends) {}
    Spaces const& spaces() const override { return spaces_; }
    void reset(std::uint64_t) override { state_[0] = 0; }
    Outcome step(std::span<float const> action) override {
        state_[0] += 1;
        return {.reward = action[0], .terminated = ends_ && state_[0] == 3};
    }
    void observe(std::span<float> into) const override { into[0] = static_cast<float>(state_[0]); }
    std::span<double> state() override { return state_; }

  private:
    bool ends_;
    Spaces spaces_{.observation = 1, .actions = 1, .continuous = true, .longest_episode = 4};
    std::array<double, 1> state_{};
};

EnvironmentMaker counters(bool ends) {
    return [ends](Period) { return std::make_unique<Counter>(ends); };
}

struct Step {
    std::array<Outcome, 2> outcomes{};
    std::array<float, 2> last_seen{};
};

Step step(EnvironmentSet& set, float first = 1, float second = 2) {
    Step result;
    set.step(std::array{first, second}, result.outcomes, result.last_seen);
    return result;
}

} // namespace

TEST_CASE("an episode that ends is counted and followed by the next") {
    auto const make = counters(true);
    EnvironmentSet set({.make = make, .environments = 2});
    step(set);
    CHECK(!set.at_start(0));
    step(set);
    auto const last = step(set);
    CHECK(last.outcomes[0].terminated);
    CHECK(!last.outcomes[0].truncated);
    CHECK(set.at_start(0));
    CHECK(set.episodes().count == 2);
    CHECK(set.episodes().return_sum == 9);
    CHECK(set.episodes().return_minimum == 3);
    CHECK(set.episodes().return_maximum == 6);
    CHECK(set.episodes().length_sum == 6);
}

TEST_CASE("an episode that takes too long is cut off, which is no end") {
    auto const make = counters(false);
    EnvironmentSet set({.make = make, .environments = 2});
    for (int i = 0; i < 3; ++i) {
        CHECK(!step(set).outcomes[1].truncated);
    }
    auto const last = step(set);
    CHECK(last.outcomes[1].truncated);
    CHECK(!last.outcomes[1].terminated);
    CHECK(last.last_seen[1] == 4); // what followed still has a value: of this, not of the next
    std::array<float, 2> seen{};
    set.observe(seen);
    CHECK(seen[1] == 0);
}

TEST_CASE("episodes differ by seed, replica, environment and number, and by nothing else") {
    auto const values = config::OwnValues("task", {}, {});
    auto const make = open_environment("cart-pole", {values, ""});
    auto const first_seen = [&](std::uint64_t seed, std::int64_t replica) {
        EnvironmentSet const set(
            {.make = make, .environments = 2, .seed = seed, .replica = replica});
        std::vector<float> seen(8);
        set.observe(seen);
        return seen;
    };
    auto const seen = first_seen(1, 2);
    CHECK(seen == first_seen(1, 2));
    CHECK(seen != first_seen(2, 2));
    CHECK(seen != first_seen(1, 3));
    CHECK(std::vector(seen.begin(), seen.begin() + 4) != std::vector(seen.begin() + 4, seen.end()));
}

TEST_CASE("a set that is given another's state continues as that one") {
    auto const values = config::OwnValues("task", {}, {});
    auto const make = open_environment("cart-pole", {values, ""});
    EnvironmentSet set({.make = make, .environments = 2, .seed = 5});
    EnvironmentSet other({.make = make, .environments = 2, .seed = 5});
    std::array<Outcome, 2> outcomes{};
    std::vector<float> last(8);
    for (int i = 0; i < 37; ++i) {
        set.step(std::array{1.0F, 0.0F}, outcomes, last);
    }
    std::vector<double> state(static_cast<std::size_t>(set.state_size()));
    set.save(state);
    other.restore(state);
    std::vector<double> after(state.size());
    for (auto* const each : {&set, &other}) {
        for (int i = 0; i < 60; ++i) {
            each->step(std::array{0.0F, 1.0F}, outcomes, last);
        }
        CHECK(each->episodes().count > 2);
        each->save(each == &set ? state : after);
    }
    CHECK(state == after);
    CHECK(set.step_key(1) == other.step_key(1));
    CHECK(set.step_key(1) != set.step_key(0));
}

TEST_CASE("a reward that is not finite is an error that says where") {
    auto const make = counters(true);
    EnvironmentSet set({.make = make, .environments = 2, .replica = 3});
    step(set);
    auto const error =
        test::error_of([&] { step(set, 1, std::numeric_limits<float>::quiet_NaN()); });
    CHECK(error.code() == ExitCode::data);
    CHECK(test::says(error, "environment 1 of replica 3"));
    CHECK(test::says(error, "step 1"));
}
