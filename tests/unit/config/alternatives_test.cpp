// What a user says is never dropped without a word: two keys for one thing, in any two sources; and
// the deck that a run has printed says nothing that has no effect.

#include "base/file.hpp"
#include "base/text.hpp"
#include "config/alternatives.hpp"
#include "config/idle_keys.hpp"
#include "lockstep/config/deck_source.hpp"

#include <array>
#include <map>

#include "catch.hpp"
#include "error_of.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;
using namespace lockstep::config;

namespace {

enum class Source { included, deck, later_deck, command_line };

constexpr std::array sources{Source::included, Source::deck, Source::later_deck,
                             Source::command_line};

struct Saying {
    Source place;
    std::string key;
    std::string value;
};

/// Reads decks of which one includes another, and the command line, with these values.
DeckSource source_of(std::filesystem::path const& scratch, std::vector<Saying> const& sayings) {
    std::map<Source, std::string> text{{Source::deck, "include = included.ini\n"}};
    std::vector<std::string> words;
    for (auto const& [place, key, value] : sayings) {
        if (place == Source::command_line) {
            words.insert(words.end(), {concat("--", key), value});
        } else {
            auto const dot = key.find('.');
            text[place] +=
                concat("[", key.substr(0, dot), "]\n", key.substr(dot + 1), " = ", value, "\n");
        }
    }
    write_text_durably(scratch / "included.ini", text[Source::included]);
    write_text_durably(scratch / "deck.ini", text[Source::deck]);
    write_text_durably(scratch / "later.ini", text[Source::later_deck]);
    DeckSource source;
    source.read(scratch / "deck.ini");
    source.read(scratch / "later.ini");
    source.take_options(words);
    return DeckSource::unpacked(source.packed());
}

std::string value_in(Deck const& deck, std::string const& key) {
    for (auto const& setting : settings(deck)) {
        if (setting.key == key) {
            return setting.value;
        }
    }
    FAIL("no key " << key);
    return {};
}

/// A value that says something, of a number or a text.
std::string some_value(std::string const& key) {
    auto const text = value_in(Deck{}, key);
    return text.empty() ? "accuracy" : "3";
}

} // namespace

TEST_CASE("of two keys for one thing the later source wins, and the other is told") {
    test::ScratchDir const scratch;
    for (auto const& pair : alternatives()) {
        for (auto const earlier : sources) {
            for (auto const later : sources) {
                for (bool const swapped : {false, true}) {
                    std::string const first = swapped ? pair.other : pair.one;
                    std::string const second = swapped ? pair.one : pair.other;
                    CAPTURE(first, second, static_cast<int>(earlier), static_cast<int>(later));
                    auto const source =
                        source_of(scratch / "", {{earlier, first, some_value(first)},
                                                 {later, second, some_value(second)}});
                    if (earlier == later) {
                        if (*pair.why != '\0') {
                            auto const error = test::error_of([&] { source.parse(); });
                            CHECK(error.code() == ExitCode::usage);
                            for (auto const& key : {first, second}) {
                                CHECK(test::says(error, concat(key, " = ")));
                                CHECK(test::says(error, source.values().at(key).origin));
                            }
                        }
                        continue;
                    }
                    auto const loser = earlier < later ? first : second;
                    auto const winner = earlier < later ? second : first;
                    auto const deck = source.parse();
                    CHECK(value_in(deck, loser) == value_in(Deck{}, loser));
                    CHECK(value_in(deck, winner) == some_value(winner));
                    auto const told = ignored_values(source, deck);
                    REQUIRE(told.size() == 1);
                    CHECK(told[0] == concat("ignored: ", loser, " = ", some_value(loser), " (",
                                            source.values().at(loser).origin, "), because ", winner,
                                            " = ", some_value(winner), " (",
                                            source.values().at(winner).origin, ") replaces it"));
                }
            }
        }
    }
}

TEST_CASE("a key that says 0 or nothing leaves the choice to the other") {
    test::ScratchDir const scratch;
    for (auto const& pair : alternatives()) {
        for (auto const& [off, on] : {std::pair{pair.one, pair.other}, {pair.other, pair.one}}) {
            auto const none = value_in(Deck{}, off);
            if (none != "0" && !none.empty()) {
                continue; // it always says something
            }
            for (auto const where : sources) {
                CAPTURE(off, on, static_cast<int>(where));
                auto const source = source_of(
                    scratch / "", {{Source::later_deck, on, some_value(on)}, {where, off, none}});
                CHECK(value_in(source.parse(), on) == some_value(on));
                CHECK(ignored_values(source, source.parse()).empty());
            }
        }
    }
}

TEST_CASE("a value that the same command line sets again is told") {
    test::ScratchDir const scratch;
    auto const source = source_of(scratch / "", {{Source::command_line, "train.steps", "5"},
                                                 {Source::command_line, "train.steps", "5"},
                                                 {Source::command_line, "train.steps", "9"}});
    auto const deck = source.parse();
    CHECK(deck.train.steps == 9);
    REQUIRE(ignored_values(source, deck).size() == 1);
    CHECK(ignored_values(source, deck)[0] ==
          "ignored: train.steps = 5 (command line), because the same command line then sets "
          "train.steps = 9");
}

TEST_CASE("a printed deck that is read again has no value that is ignored") {
    test::ScratchDir const scratch;
    for (auto const* const rule : {"adamw", "adam", "sgd", "lars", "lamb"}) {
        for (auto const* const schedule : {"constant", "cosine", "step"}) {
            CAPTURE(rule, schedule);
            // What a choice leaves behind in the deck, and what has none.
            auto const before =
                source_of(scratch / "", {{Source::deck, "optimizer.momentum", "0.9"},
                                         {Source::deck, "optimizer.betas", "0.8, 0.95"},
                                         {Source::deck, "schedule.factor", "0.5"},
                                         {Source::deck, "schedule.minimum", "0.1"},
                                         {Source::deck, "distill.temperature", "2"},
                                         {Source::deck, "run.replicas", "2"},
                                         {Source::deck, "data.batch", "4"},
                                         {Source::deck, "data.global-batch", "8"},
                                         {Source::command_line, "optimizer.name", rule},
                                         {Source::command_line, "schedule.name", schedule}});
            auto const deck = before.parse();
            CHECK(ignored_values(before, deck).size() >= 2); // each a word of the user
            write_text_durably(scratch / "run.ini", to_text(deck));
            DeckSource again;
            again.read(scratch / "run.ini");
            CHECK(ignored_values(again, again.parse()).empty());
            CHECK(to_text(again.parse()) == to_text(deck));
            CHECK(forbidden_changes(deck, again.parse()).empty());

            again.take_options({"--run.replicas", "4"});
            CHECK(again.parse().data.global_batch == 8);
            again.take_options({"--data.batch", "16"});
            CHECK(again.parse().data.global_batch == 0);
            CHECK(ignored_values(again, again.parse()).size() == 1);
        }
    }
}
