#include "model_files/moved_files.hpp"

#include "catch.hpp"

using namespace lockstep;
using namespace lockstep::train;

namespace {

config::Deck deck_in(std::string const& place) {
    config::Deck deck;
    deck.model.name = "export";
    deck.model.own =
        config::OwnKeys{{"file", place + "/model.pt2"}, {"operators", place + "/ops.so"}};
    deck.task.kind = "plugin:" + place + "/own.so:margin";
    deck.distill.teacher = place + "/teacher.h5";
    deck.data.validation = place + "/validation.h5";
    return deck;
}

std::vector<std::string> changes(config::Deck const& before, config::Deck const& now,
                                 std::set<std::string> const& keys) {
    return config::forbidden_changes(with_places_of(before, now, keys), now);
}

} // namespace

TEST_CASE("a file whose contents are known by their hash may lie in another place") {
    checkpoint::Record record;
    CHECK(keys_of_hashed_files(record).empty()); // as in checkpoints of earlier versions
    record.integers = {{"model", 1}, {"teacher", 2}, {"validation", 3}};
    record.notes = {{"hash of task.kind", "4"}, {"hash of model.operators", "5"}, {"time", "now"}};
    auto const keys = keys_of_hashed_files(record);
    auto const before = deck_in("/old");
    CHECK(config::forbidden_changes(before, deck_in("/new")).size() == 5);
    CHECK(changes(before, deck_in("/new"), {}).size() == 5);
    CHECK(changes(before, deck_in("/new"), keys).empty());
    for (auto const& key :
         {"model.file", "model.operators", "task.kind", "distill.teacher", "data.validation"}) {
        auto others = keys;
        REQUIRE(others.erase(key) == 1);
        auto const left = changes(before, deck_in("/new"), others);
        REQUIRE(left.size() == 1);
        CHECK(left[0].starts_with(key));
    }
    record.integers["model"] = 0; // a model that is made from no file
    CHECK_FALSE(keys_of_hashed_files(record).contains("model.file"));
}

TEST_CASE("a file that is added, removed or of another kind is more than another place") {
    std::set<std::string> const keys{"model.file",     "model.operators", "model.name",
                                     "task.kind",      "distill.teacher", "distill.outputs",
                                     "data.validation"};
    auto const before = deck_in("/old");
    auto const changed = [&](auto const& change) {
        auto now = deck_in("/new");
        change(now);
        return changes(before, now, keys);
    };
    using Lines = std::vector<std::string>;
    CHECK(changed([](auto& now) { now.task.kind = "plugin:/new/own.so:other"; }) ==
          Lines{"task.kind = plugin:/new/own.so:other (was plugin:/old/own.so:margin)"});
    CHECK(changed([](auto& now) { now.task.kind = "plugin:self:margin"; }) ==
          Lines{"task.kind = plugin:self:margin (was plugin:/old/own.so:margin)"});
    CHECK(changed([](auto& now) { now.distill.teacher.clear(); }) ==
          Lines{"distill.teacher =  (was /old/teacher.h5)"});
    CHECK(changed([](auto& now) { now.data.validation = "10 %"; }) ==
          Lines{"data.validation = 10 % (was /old/validation.h5)"});
    CHECK(changed([](auto& now) { now.model.own.erase("operators"); }) ==
          Lines{"model.operators is not set (was /old/ops.so)"});
    CHECK(changed([](auto& now) { now.optimizer.learning_rate = 0.5; }).size() == 1);
}
