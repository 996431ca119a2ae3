#include "lockstep/rl/environment.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "catch.hpp"
#include "error_of.hpp"
#include "golden_lines.hpp"

using namespace lockstep;
using namespace lockstep::rl;

namespace {

config::OwnValues no_values() {
    return {"task", {}, {}};
}

std::unique_ptr<Environment> make(std::string const& name) {
    auto const values = no_values();
    return open_environment(name, {values, ""})(Period::training);
}

/// How far two angles or numbers lie apart; pendulums turn more than once.
double apart(double a, double b) {
    return std::abs(a - b);
}

/// Replays gymnasium's steps, each from the state that it had. Returns the largest difference.
double replay(std::string const& name, std::size_t& steps) {
    auto const environment = make(name);
    auto const state = environment->state();
    auto const seen = static_cast<std::size_t>(environment->spaces().observation);
    double worst = 0;
    for (auto const& line : test::golden_lines("environments.txt")) {
        auto const space = line.find(' ');
        if (line.substr(0, space) != name) {
            continue;
        }
        auto const row = test::numbers_of(line.substr(space));
        REQUIRE(row.size() == 2 * state.size() + 3 + seen);
        std::copy_n(row.begin(), state.size(), state.begin());
        auto const action = static_cast<float>(row[state.size()]);
        auto const outcome = environment->step(std::span(&action, 1));
        auto const* expected = row.data() + state.size() + 1;
        for (std::size_t i = 0; i < state.size(); ++i) {
            worst = std::max(worst, apart(state[i], expected[i]));
        }
        worst = std::max(worst, apart(outcome.reward, expected[state.size()]));
        CHECK(outcome.terminated == (expected[state.size() + 1] != 0));
        std::vector<float> observation(seen);
        environment->observe(observation);
        for (std::size_t i = 0; i < seen; ++i) {
            worst = std::max(worst, apart(observation[i], expected[state.size() + 2 + i]));
        }
        ++steps;
    }
    return worst;
}

} // namespace

TEST_CASE("environments step as gymnasium's do") {
    std::size_t steps = 0;
    CHECK(replay("cart-pole", steps) == 0);  // the same bits
    CHECK(replay("acrobot", steps) <= 1e-6); // observations are float32
    CHECK(replay("pendulum", steps) <= 1e-6);
    CHECK(steps == 360);
}

TEST_CASE("an episode is drawn from its key, within bounds") {
    for (auto const& [name, widest] : {std::pair("cart-pole", 0.05), std::pair("acrobot", 0.1),
                                       std::pair("pendulum", std::numbers::pi)}) {
        auto const a = make(name);
        auto const b = make(name);
        a->reset(7);
        b->reset(7);
        CHECK(std::equal(a->state().begin(), a->state().end(), b->state().begin()));
        b->reset(8);
        CHECK(!std::equal(a->state().begin(), a->state().end(), b->state().begin()));
        for (std::uint64_t key = 0; key < 200; ++key) {
            a->reset(key);
            CHECK(std::abs(a->state()[0]) <= widest);
        }
    }
}

TEST_CASE("the masked cart shows position and angle alone") {
    auto const masked = make("cart-pole-masked");
    masked->reset(3);
    std::vector<float> seen(2);
    masked->observe(seen);
    CHECK(seen[0] == static_cast<float>(masked->state()[0]));
    CHECK(seen[1] == static_cast<float>(masked->state()[2]));
}

TEST_CASE("what is seen is scaled, number by number, and nothing else is") {
    auto const open = [](std::vector<double> scale) {
        return scaled([](Period) { return make("cart-pole-masked"); },
                      std::move(scale))(Period::training);
    };
    auto const plain = make("cart-pole-masked");
    auto const each = open({2, 10});
    auto const all = open({4});
    float const push = 1;
    for (auto* environment : {plain.get(), each.get(), all.get()}) {
        environment->reset(3);
        CHECK(environment->step(std::span(&push, 1)).reward == 1);
        CHECK(
            std::equal(plain->state().begin(), plain->state().end(), environment->state().begin()));
    }
    std::vector<float> raw(2), seen(2);
    plain->observe(raw);
    REQUIRE(raw[0] != 0);
    each->observe(seen);
    CHECK(seen == std::vector{raw[0] * 2, raw[1] * 10});
    all->observe(seen);
    CHECK(seen == std::vector{raw[0] * 4, raw[1] * 4});
    CHECK(test::error_of([&] { open({1, 2, 3}); }).code() == ExitCode::usage);
}

TEST_CASE("an unknown environment is named with what is near") {
    auto const error = test::error_of([] { make("cartpole"); });
    CHECK(error.code() == ExitCode::usage);
    CHECK(test::says(error, "cart-pole"));
}
