#include "optimizer/schedule.hpp"

#include <cmath>
#include <numbers>

#include "catch.hpp"

using namespace lockstep;

namespace {

config::Deck deck_with(std::string const& schedule) {
    config::Deck deck;
    deck.run.replicas = 4;
    deck.optimizer.learning_rate = 0.4;
    deck.schedule.name = schedule;
    return deck;
}

} // namespace

TEST_CASE("warm-up is linear from 0, then the cosine goes over what is left") {
    auto deck = deck_with("cosine");
    deck.schedule.warmup_steps = 10;
    deck.schedule.minimum = 0.1;
    train::Schedule const schedule(deck, 50, 110);
    CHECK(schedule.rate(0) == 0);
    CHECK(schedule.rate(5) == Approx(0.2));
    CHECK(schedule.rate(10) == Approx(0.4));
    CHECK(schedule.rate(60) == Approx(0.4 * (0.1 + 0.9 * 0.5)));
    CHECK(schedule.rate(35) ==
          Approx(0.4 * (0.1 + 0.9 * (1 + std::cos(std::numbers::pi / 4)) / 2)));
    CHECK(schedule.rate(110) == Approx(0.04));
    CHECK(schedule.rate(500) == Approx(0.04));
}

TEST_CASE("warm-up in epochs counts the same samples at any batch") {
    auto deck = deck_with("constant");
    deck.schedule.warmup_epochs = 0.5;
    train::Schedule const schedule(deck, 100, 1000);
    CHECK(schedule.rate(25) == Approx(0.2));
    CHECK(schedule.rate(50) == Approx(0.4));
    CHECK(schedule.rate(999) == Approx(0.4));
}

TEST_CASE("step falls by its factor") {
    auto deck = deck_with("step");
    deck.schedule.step_epochs = 2;
    deck.schedule.factor = 0.5;
    train::Schedule const schedule(deck, 10, 100);
    CHECK(schedule.rate(19) == Approx(0.4));
    CHECK(schedule.rate(20) == Approx(0.2));
    CHECK(schedule.rate(45) == Approx(0.1));
}

TEST_CASE("the rate is scaled by replicas over reference-replicas") {
    auto deck = deck_with("constant");
    deck.optimizer.reference_replicas = 1;
    CHECK(train::Schedule(deck, 1, 1).peak() == Approx(0.4));
    deck.optimizer.scale_learning_rate = "linear";
    CHECK(train::Schedule(deck, 1, 1).peak() == Approx(1.6));
    deck.optimizer.scale_learning_rate = "sqrt";
    CHECK(train::Schedule(deck, 1, 1).peak() == Approx(0.8));
}
