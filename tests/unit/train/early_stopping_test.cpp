#include "optimizer/schedule.hpp"
#include "train/early_stopping.hpp"

#include <limits>

#include "catch.hpp"
#include "error_of.hpp"

using namespace lockstep;
using namespace lockstep::train;

namespace {

config::Deck patient(std::int64_t patience) {
    config::Deck deck;
    deck.train.patience = patience;
    return deck;
}

/// How a run of 100 steps stands after values that are measured after steps 1, 2, ….
Progress measured(config::Deck const& deck, std::vector<double> const& values) {
    EarlyStopping const stopping(deck);
    Progress progress;
    for (double const value : values) {
        ++progress.step;
        stopping.take(progress, value, /*more_is_better=*/true, 100);
    }
    return progress;
}

} // namespace

TEST_CASE("a run is over after so many validations in a row without improvement") {
    auto const deck = patient(2);
    EarlyStopping const stopping(deck);
    CHECK_FALSE(stopping.is_due(measured(deck, {0.5, 0.4, 0.6, 0.5})));
    CHECK(stopping.is_due(measured(deck, {0.5, 0.4, 0.5})));
    CHECK(stopping.is_due(measured(deck, {0.5, 0.6, 0.6, 0.55})));
    constexpr auto nan = std::numeric_limits<double>::quiet_NaN();
    CHECK(stopping.is_due(measured(deck, {nan, nan})));
    CHECK_FALSE(stopping.is_due(measured(deck, {nan, 0.5, nan})));
    CHECK_FALSE(EarlyStopping(patient(0)).is_due(measured(patient(0), {0.5, 0.4, 0.3, 0.2})));
}

TEST_CASE("a change that is no more than train.minimum-change is no improvement") {
    auto deck = patient(2);
    deck.train.minimum_change = 0.125;
    CHECK(EarlyStopping(deck).is_due(measured(deck, {0.5, 0.625, 0.5625})));
    CHECK_FALSE(EarlyStopping(deck).is_due(measured(deck, {0.5, 0.5625, 0.6875})));
}

TEST_CASE("a checkpoint holds what was counted, and nothing where the feature is off") {
    auto const progress = measured(patient(3), {0.5, 0.4, 0.3});
    checkpoint::Record record;
    progress.write_to(record);
    auto const read = Progress::read_from(record);
    CHECK(read.early.best == 0.5);
    CHECK(read.early.without == 2);
    CHECK(read.early_length == 100);
    checkpoint::Record off;
    Progress{}.write_to(off);
    CHECK(off.integers.size() == 3);
    CHECK(off.reals.size() == 3);
}

TEST_CASE(
    "a run that was over counts from 0 where it was lengthened or continues another, and only "
    "there") {
    auto const deck = patient(2);
    EarlyStopping const stopping(deck);
    auto const over = measured(deck, {0.5, 0.4, 0.5});
    auto const resumed = [&](Progress progress, std::int64_t total_steps, bool foreign) {
        stopping.resume(progress, total_steps, foreign);
        return progress.early.without;
    };
    CHECK(resumed(over, 100, false) == 2);
    CHECK(resumed(over, 90, false) == 2);
    CHECK(resumed(over, 101, false) == 0);
    CHECK(resumed(over, 100, true) == 0);
    CHECK(resumed(measured(deck, {0.5, 0.4}), 101, true) == 1);
    CHECK_FALSE(EarlyStopping(patient(3)).is_due(over));
}

TEST_CASE("a model that is still too large does not end the run") {
    auto deck = patient(1);
    deck.prune.pattern = "unstructured";
    deck.prune.begin = 1;
    deck.prune.end = 3;
    CHECK_FALSE(EarlyStopping(deck).is_due(measured(deck, {0.5, 0.4, 0.3})));
    CHECK_FALSE(EarlyStopping(deck).is_due(measured(deck, {0.5, 0.4, 0.3, 0.2})));
    CHECK(EarlyStopping(deck).is_due(measured(deck, {0.5, 0.4, 0.3, 0.2, 0.1})));
    auto progress = measured(patient(1), {0.5, 0.4});
    progress.plateau = {.metric = {.best = 0.5, .without = 1}, .cooldown = 0, .reductions = 2};
    progress.forget_best();
    CHECK_FALSE(progress.early.best);
    CHECK(progress.early.without == 0);
    CHECK_FALSE(progress.plateau.metric.best);
    CHECK(progress.plateau.reductions == 2);
}

TEST_CASE("what cannot work is refused") {
    config::Deck deck;
    require_validation(deck, false);
    require_validation(patient(1), true);
    CHECK(test::error_of([] { require_validation(patient(1), false); }).code() == ExitCode::usage);
    deck.schedule.name = "plateau";
    CHECK(test::error_of([&] { require_validation(deck, false); }).code() == ExitCode::usage);
    deck.schedule.name = "multi-step";
    CHECK(test::error_of([&] { require_complete(deck.schedule); }).code() == ExitCode::usage);
    deck.schedule.milestones = "3";
    require_complete(deck.schedule);
}
