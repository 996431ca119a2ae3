// Schedules against torch.optim.lr_scheduler's learning rates: tests/golden/make_schedules.py.

#include "lockstep/config/deck_source.hpp"
#include "optimizer/plateau.hpp"
#include "optimizer/schedule.hpp"

#include <cmath>
#include <limits>

#include "catch.hpp"
#include "golden.hpp"

using namespace lockstep;
using nlohmann::json;

namespace {

constexpr double precision = 1e-12; // relative: torch takes most rates from those before

config::Deck deck_with(json const& golden, json const& keys) {
    config::DeckSource source;
    for (auto const& [key, value] : keys.items()) {
        auto const text = value.is_string() ? value.get<std::string>() : value.dump();
        source.set("schedule." + key, {text, "golden"});
    }
    auto deck = source.parse();
    deck.run.replicas = 1;
    deck.optimizer.learning_rate = golden["peak"];
    return deck;
}

void check_same(double ours, double theirs) {
    CHECK(std::abs(ours - theirs) <= precision * std::abs(theirs));
}

double number(json const& value) {
    return value.is_number() ? value.get<double>()
           : value == "inf"  ? std::numeric_limits<double>::infinity()
                             : std::numeric_limits<double>::quiet_NaN();
}

} // namespace

TEST_CASE("the rates of all schedules are those of torch.optim.lr_scheduler") {
    auto const golden = test::golden("schedules.json");
    std::size_t checked = 0;
    for (auto const& each : golden["schedules"]) {
        CAPTURE(each["schedule"].dump());
        std::int64_t const steps = each["steps"];
        train::Schedule const schedule(deck_with(golden, each["schedule"]), each["steps_per_epoch"],
                                       steps);
        REQUIRE(each["rates"].size() == static_cast<std::size_t>(steps));
        for (std::int64_t step = 0; step < steps; ++step) {
            CAPTURE(step);
            check_same(schedule.rate(step), each["rates"][static_cast<std::size_t>(step)]);
            ++checked;
        }
    }
    CHECK(checked > 2000);
}

TEST_CASE("a plateau reduces the rate when torch's ReduceLROnPlateau does") {
    auto const golden = test::golden("schedules.json");
    std::int64_t reductions = 0;
    for (auto const& each : golden["plateaus"]) {
        CAPTURE(each["schedule"].dump(), each["more_is_better"].dump());
        auto const deck = deck_with(golden, each["schedule"]);
        train::Schedule const schedule(deck, 10, 1000);
        train::Plateau const plateau(deck.schedule, each["more_is_better"]);
        train::PlateauState state;
        for (std::size_t i = 0; i < each["values"].size(); ++i) {
            CAPTURE(i);
            auto const before = state.reductions;
            bool const reduces = plateau.take(state, number(each["values"][i]));
            CHECK(reduces == (state.reductions == before + 1));
            check_same(schedule.rate(static_cast<std::int64_t>(i), state.reductions),
                       each["rates"][i]);
        }
        reductions += state.reductions;
    }
    CHECK(reductions > 50);
}

TEST_CASE("a relative threshold of a negative best value asks for a better one, too") {
    config::Schedule keys;
    keys.threshold = 0.1;
    keys.patience = 0;
    train::PlateauState state;
    train::Plateau const plateau(keys, /*more_is_better=*/true);
    CHECK_FALSE(plateau.take(state, -100));
    CHECK(plateau.take(state, -95)); // which is better than -100 * 1.1, torch's bound
    CHECK_FALSE(plateau.take(state, -89));
    CHECK(plateau.take(state, -105));
}

TEST_CASE("the longer of the two warm-ups counts, and a run that ends in it is no special case") {
    config::Deck deck;
    deck.run.replicas = 1;
    deck.optimizer.learning_rate = 1;
    deck.schedule.name = "cosine";
    deck.schedule.warmup_steps = 10;
    deck.schedule.warmup_epochs = 0.25;
    train::Schedule const schedule(deck, 100, 20);
    CHECK(schedule.rate(10) == Approx(0.4));
    CHECK(schedule.rate(19) == Approx(0.76));
    CHECK(schedule.rate(25) == Approx(1));
}
