#include "base/file.hpp"
#include "config/hidden_pairs.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/config/deck_source.hpp"
#include "lockstep/config/own_keys.hpp"

#include "catch.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;
using namespace lockstep::config;

namespace {

std::string failure_of(DeckSource const& source) {
    try {
        source.parse();
    } catch (Error const& error) {
        CHECK(error.code() == ExitCode::usage);
        return error.what();
    }
    return "";
}

bool contains(std::string const& text, std::string const& part) {
    return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("later decks win over earlier ones, a deck over its include, the command line over all") {
    test::ScratchDir const scratch;
    write_text_durably(scratch / "base.ini", "[data]\nbatch = 8\nworkers = 3\n[run]\nseed = 1\n");
    write_text_durably(scratch / "a.ini", "include = base.ini\n[data]\nbatch = 16\n");
    write_text_durably(scratch / "b.ini", "[run]\nseed = 2\n[model]\nname = cnn\nhidden = 9\n");
    DeckSource source;
    source.read(scratch / "a.ini");
    source.read(scratch / "b.ini");
    auto const others = source.take_options(
        {"x", "--data.workers", "5", "--optimizer.learning-rate=0.5", "--force"});
    auto const deck = DeckSource::unpacked(source.packed()).parse();
    CHECK(others == std::vector<std::string>{"x", "--force"});
    CHECK(deck.data.batch == 16);
    CHECK(deck.data.workers == 5);
    CHECK(deck.run.seed == 2);
    CHECK(deck.optimizer.learning_rate == 0.5);
    CHECK(deck.model.own.at("hidden") == "9");
    CHECK(deck.data.prefetch == 4); // the default
}

TEST_CASE("a switch that is also automatic takes all words for true and false") {
    test::ScratchDir const scratch;
    auto const path = scratch / "deck.ini";
    auto const graphs = [&](std::string const& value) {
        write_text_durably(path, "[run]\n" + (value.empty() ? "" : "graphs = " + value) + "\n");
        DeckSource source;
        source.read(path);
        return source.parse().run.graphs;
    };
    CHECK(graphs("") == "auto");
    CHECK(graphs("auto") == "auto");
    for (auto const* const yes : {"true", "yes", "on", "1"}) {
        CHECK(graphs(yes) == "true");
    }
    for (auto const* const no : {"false", "no", "off", "0"}) {
        CHECK(graphs(no) == "false");
    }
}

TEST_CASE("errors name file, line, key, what was expected and the nearest name") {
    test::ScratchDir const scratch;
    auto const path = scratch / "deck.ini";
    auto const failure = [&](std::string const& text) {
        write_text_durably(path, text);
        DeckSource source;
        source.read(path);
        return failure_of(source);
    };
    auto const unknown = failure("# a comment\n[optimizer]\n\nlearning-rat = 1\n");
    CHECK(contains(unknown, path.string() + ":4"));
    CHECK(contains(unknown, "Did you mean optimizer.learning-rate?"));
    CHECK(contains(failure("[optimizer]\nlr = 1\n"), "Did you mean optimizer.learning-rate?"));
    CHECK(contains(failure("[train]\nbatch_size = 1\n"), "Did you mean data.batch?"));
    CHECK(config::nearest_key("epochs") == "train.epochs");
    CHECK(config::nearest_key("steps") == "train.steps"); // and not profile.steps
    CHECK(config::nearest_key("learning_rate") == "optimizer.learning-rate");
    CHECK(config::nearest_key("gradient_clip_val") == "optimizer.clip-norm");
    CHECK(config::nearest_key("target_modules") == "model.lora-targets");
    CHECK(config::nearest_key("lora_alpha") == "model.lora-alpha");
    CHECK(config::nearest_key("lora_r") == "model.lora-rank");
    CHECK(config::nearest_key("ignore_index") == "task.ignore-label");
    CHECK(config::nearest_key("nothing-like-it").empty());
    CHECK(contains(failure("[data]\nbatch = many\n"), "deck.ini:2"));
    CHECK(contains(failure("[data]\nbatch = 0\n"), "a whole number from 1 to 4194304"));
    CHECK(contains(failure("[data]\nshuffle = maybe\n"), "one of full, block, none"));
    CHECK(contains(failure("[data]\ndrop-last = 2\n"), "true or false"));
    CHECK(contains(failure("[run]\ngraphs = 2\n"), "one of auto, true, false"));
    CHECK(contains(failure("[optimizer]\nbetas = 0.9\n"), "2 numbers"));

    write_text_durably(path, "[data]\nbatch = 1\nbatch = 2\n");
    DeckSource twice;
    CHECK_THROWS_AS(twice.read(path), Error);
    write_text_durably(path, "include = deck.ini\n");
    CHECK_THROWS_AS(twice.read(path), Error);
}

TEST_CASE("keys of a model or a task are told with their file and line, too") {
    test::ScratchDir const scratch;
    auto const source_of = [&](std::string const& text) {
        write_text_durably(scratch / "deck.ini", text);
        DeckSource source;
        source.read(scratch / "deck.ini");
        return source;
    };
    auto deck =
        DeckSource::unpacked(source_of("[model]\nhiden = 9\nhidden = nine\n").packed()).parse();
    auto const told = [&](std::vector<OwnKey> const& known) -> std::string {
        try {
            OwnValues const values("model", deck.model.own, known);
            values.integers("hidden", 1);
        } catch (Error const& error) {
            return error.what();
        }
        return "";
    };
    OwnKey const hidden{"hidden", "1", ""};
    CHECK(contains(told({hidden}), "unknown key model.hiden ("));
    CHECK(contains(told({hidden}), "Did you mean model.hidden?"));
    CHECK(contains(told({hidden}), "deck.ini:2)"));
    CHECK(contains(told({hidden, {"hiden", "1", ""}}), "model.hidden = nine ("));
    CHECK(contains(told({hidden, {"hiden", "1", ""}}), "deck.ini:3)"));
    deck = source_of("[model]\nnam = mlp\n").parse();
    CHECK(contains(told({hidden}), "Did you mean model.name?"));
}

TEST_CASE("a printed deck gives the same deck again") {
    DeckSource source;
    source.set("optimizer.learning-rate", {"0.1", "test"});
    source.set("model.name", {"mlp", "test"});
    source.set("model.hidden", {"3, 4", "test"});
    auto const deck = source.parse();
    test::ScratchDir const scratch;
    write_text_durably(scratch / "again.ini", to_text(deck));
    DeckSource again;
    again.read(scratch / "again.ini");
    auto const parsed = again.parse();
    CHECK(to_text(parsed) == to_text(deck));
    CHECK(parsed.optimizer.learning_rate == deck.optimizer.learning_rate);
}

TEST_CASE("what may change at a resume and what needs --force") {
    Deck before;
    Deck now = before;
    now.train.epochs = 9;
    now.data.workers = 7;
    now.checkpoint.keep = 1;
    CHECK(forbidden_changes(before, now).empty());
    now.optimizer.learning_rate = 3;
    now.model.own["hidden"] = "5";
    CHECK(forbidden_changes(before, now).size() == 2);
    CHECK(forbidden_changes(now, before).size() == 2);
}

TEST_CASE("keys of a model are checked by the model") {
    std::vector<OwnKey> const known{{"hidden", "64", ""}, {"dropout", "0", ""}};
    OwnValues const values("model", {{"hidden", "3, 5"}}, known);
    CHECK(values.integers("hidden", 1) == std::vector<std::int64_t>{3, 5});
    CHECK(values.number("dropout", 0, 1) == 0);
    CHECK_THROWS_AS(OwnValues("model", {{"hiden", "3"}}, known), Error);
    CHECK_THROWS_AS(values.integer("hidden", 1), Error);
}

TEST_CASE("pairs of hidden layers") {
    CHECK(hidden_pairs("none")->empty());
    CHECK(*hidden_pairs("a.b:c, d , e : f") ==
          std::vector<HiddenPair>{{"a.b", "c"}, {"d", "d"}, {"e", "f"}});
    for (auto const* const wrong : {"", "a:", ":b", "a:b:c", "a,,b"}) {
        INFO(wrong);
        CHECK_FALSE(hidden_pairs(wrong));
        DeckSource source;
        source.set("distill.hidden", {wrong, "test"});
        CHECK_THROWS_AS(source.parse(), Error);
    }
}
