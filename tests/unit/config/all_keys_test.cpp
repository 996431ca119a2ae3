// Over every key of the deck at once, so that a new key cannot be forgotten anywhere.

#include "base/file.hpp"
#include "base/text.hpp"
#include "config/describe.hpp"
#include "config/idle_keys.hpp"
#include "config/listed_keys.hpp"
#include "config/named_files.hpp"
#include "lockstep/config/deck_source.hpp"
#include "lockstep/config/own_keys.hpp"

#include <algorithm>

#include "catch.hpp"
#include "error_of.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;
using namespace lockstep::config;

namespace {

/// A value of each key that is not its default.
std::map<std::string, std::string> other_values() {
    std::map<std::string, std::string> const named{{"run.mode", "ddp"},
                                                   {"run.graphs", "false"},
                                                   {"run.device", "cpu"},
                                                   {"data.shuffle", "none"},
                                                   {"data.cache", "local:/tmp/copies"},
                                                   {"optimizer.name", "sgd"},
                                                   {"schedule.name", "cosine"},
                                                   {"schedule.milestones", "3, 5"},
                                                   {"optimizer.scale-learning-rate", "sqrt"},
                                                   {"optimizer.update", "replicated"},
                                                   {"monitor.progress", "plain"},
                                                   {"profile.steps", "100-110"},
                                                   {"monitor.histograms", "gradients"},
                                                   {"monitor.weight-hash", "false"},
                                                   {"communication.backend", "mpi"},
                                                   {"communication.reduction", "native"},
                                                   {"communication.compression", "fp16"},
                                                   {"run.placement", "speed"},
                                                   {"precision.compute", "bf16"},
                                                   {"precision.memory-format", "contiguous"},
                                                   {"fault-tolerance.memory-copy-every", "5"},
                                                   {"prune.pattern", "2:4"},
                                                   {"privacy.delta", "0.25"},
                                                   {"privacy.accountant", "prv"},
                                                   {"prune.sparsity", "0.25"},
                                                   {"prune.target", "macs 0.25"},
                                                   {"prune.score", "taylor"},
                                                   {"prune.scope", "layer"},
                                                   {"optimizer.ema", "0.5"},
                                                   {"optimizer.groups", "output.* rate 2"},
                                                   {"optimizer.layer-decay", "0.5"},
                                                   {"model.weights-match", "common"},
                                                   {"run.replicas", "2"},
                                                   {"data.batch", "4"},
                                                   {"data.global-batch", "8"},
                                                   {"schedule.warmup-epochs", "0"},
                                                   {"distill.outputs", ""},
                                                   {"optimizer.momentum", "0.5"},
                                                   {"optimizer.betas", "0.8, 0.95"}};
    std::map<std::string, std::string> values;
    for (auto const& setting : settings(Deck{})) {
        if (auto const found = named.find(setting.key); found != named.end()) {
            values[setting.key] = found->second;
        } else if (setting.value == "true" || setting.value == "false") {
            values[setting.key] = setting.value == "true" ? "false" : "true";
        } else if (setting.value.find_first_not_of("0123456789.e-") == std::string::npos &&
                   !setting.value.empty()) {
            bool const whole = setting.value.find_first_of(".e") == std::string::npos;
            values[setting.key] = whole && setting.value != "0" ? concat(setting.value, 1) : "1";
        } else {
            values[setting.key] = "something else";
        }
    }
    return values;
}

Deck other_deck() {
    DeckSource source;
    for (auto const& [key, value] : other_values()) {
        source.set(key, {value, "test"});
    }
    return source.parse();
}

Deck read_deck(std::filesystem::path const& path) {
    DeckSource source;
    source.read(path);
    return source.parse();
}

/// What the rules of the keys say.
struct CollectRules {
    std::map<std::string, Rule> rules{};

    template <class Value>
    void operator()(char const* key, Value const& /*value*/, Rule const& rule,
                    char const* /*meaning*/) {
        rules.emplace(key, rule);
    }
    void own(char const* /*section*/, OwnKeys const& /*keys*/) {}
};

std::map<std::string, Rule> all_rules() {
    CollectRules collect;
    Deck const deck;
    describe(deck, collect);
    return collect.rules;
}

} // namespace

TEST_CASE("each key whose value is a path says what it names") {
    for (auto const& [key, rule] : all_rules()) {
        CAPTURE(key);
        bool const is_path = rule.check == check_paths || rule.check == check_files ||
                             rule.check == check_files_or_share ||
                             rule.check == check_run_directory;
        bool const names_path = rule.names == Named::samples || rule.names == Named::model ||
                                rule.names == Named::output;
        CHECK(is_path == names_path);
        CHECK(names_of(key) == rule.names);
    }
    CHECK(names_of("model.file") == Named::model);
    CHECK(names_of("model.hidden") == Named::nothing);
    CHECK(names_contents("task.kind"));
    CHECK_FALSE(names_contents("data.inputs"));
}

TEST_CASE("each key that needs another is idle in some deck, and is not in another one") {
    auto const rules = all_rules();
    std::vector<Deck> decks{Deck{}, other_deck()};
    auto const vary = [&](auto const& change) { change(decks.emplace_back()); };
    vary([](Deck& deck) { deck.optimizer.name = "lars"; });
    vary([](Deck& deck) {
        deck.optimizer.name = "sgd";
        deck.optimizer.nesterov = true;
        deck.optimizer.momentum = 0;
    });
    for (auto const* const name : {"step", "multi-step", "exponential", "polynomial", "one-cycle",
                                   "cosine-restarts", "plateau"}) {
        vary([&](Deck& deck) { deck.schedule.name = name; });
    }
    vary([](Deck& deck) { deck.train.patience = 3; });
    vary([](Deck& deck) { deck.optimizer.freeze = "conv*"; });
    vary([](Deck& deck) { deck.model.lora_rank = 4; });
    vary([](Deck& deck) { deck.precision.compute = "fp16"; });
    vary([](Deck& deck) { deck.communication.compression = "powersgd"; });
    vary([](Deck& deck) { deck.prune.pattern = "channels"; });
    vary([](Deck& deck) { deck.prune.pattern = "unstructured"; });
    vary([](Deck& deck) { deck.distill = {.teacher = "a.h5", .hidden = "conv1"}; });
    vary([](Deck& deck) {
        deck.task.metric = "loss";
        deck.checkpoint.best = "accuracy";
    });
    for (auto const& [key, rule] : rules) {
        for (auto const& need : rule.needs) {
            CAPTURE(key, need.key);
            CHECK(rules.contains(need.key));
            auto const met =
                std::ranges::count_if(decks, [&](Deck const& deck) { return need.is_met(deck); });
            CHECK(met > 0);
            CHECK(met < std::ssize(decks));
        }
        auto const idle = std::ranges::count_if(
            decks, [&](Deck const& deck) { return idle_keys(deck).contains(key); });
        CHECK((idle > 0) == !rule.needs.empty());
    }
}

TEST_CASE("without a deck every key has its default") {
    CHECK(to_text(DeckSource().parse()) == to_text(Deck{}));
}

TEST_CASE("every key is taken in, printed and read again as it was") {
    auto const deck = other_deck();
    auto const values = other_values();
    for (auto const& setting : settings(deck)) {
        CAPTURE(setting.key);
        auto const wanted = values.find(setting.key);
        if (wanted != values.end()) {
            CHECK(setting.value == wanted->second);
        }
    }
    test::ScratchDir const scratch;
    write_text_durably(scratch / "deck.ini", to_text(deck));
    CHECK(to_text(read_deck(scratch / "deck.ini")) == to_text(deck));
}

TEST_CASE("numbers are printed so that their bits come back") {
    Deck deck;
    for (double const rate : {0.1, 1.0 / 3, 1e-300, 123456789.123456789, 5e-324}) {
        deck.optimizer.learning_rate = rate;
        test::ScratchDir const scratch;
        write_text_durably(scratch / "deck.ini", to_text(deck));
        CHECK(read_deck(scratch / "deck.ini").optimizer.learning_rate == rate);
    }
}

TEST_CASE("at a resume every key that changes the result is told, with both values") {
    auto const changes = forbidden_changes(Deck{}, other_deck());
    auto const idle = idle_keys(other_deck());
    auto const told = [&](std::string const& key) {
        return std::any_of(changes.begin(), changes.end(), [&](std::string const& change) {
            return change.rfind(key + " = ", 0) == 0;
        });
    };
    for (auto const& [key, value] : other_values()) {
        auto const all = settings(Deck{});
        auto const setting = std::find_if(
            all.begin(), all.end(), [&](Setting const& candidate) { return candidate.key == key; });
        CAPTURE(key);
        // The other deck's sums are compressed and in the library's order: buckets count.
        bool const counts = value != setting->value && !idle.contains(key);
        CHECK(told(key) == (counts && setting->at_resume == AtResume::forced));
    }
    for (std::string const key :
         {"model.name", "data.inputs", "run.seed", "run.replicas", "data.batch", "run.threads",
          "optimizer.learning-rate", "optimizer.accumulate", "schedule.name"}) {
        CAPTURE(key);
        CHECK(told(key));
    }
    for (std::string const key : {"train.epochs", "train.steps", "data.train", "monitor.log-every",
                                  "checkpoint.keep", "data.workers", "communication.backend"}) {
        CAPTURE(key);
        CHECK_FALSE(told(key));
    }
    Deck now;
    now.run.seed = 5;
    CHECK(forbidden_changes(Deck{}, now) == std::vector<std::string>{"run.seed = 5 (was 0)"});
}

TEST_CASE("every key is in the help") {
    auto const help = keys_help();
    for (auto const& setting : settings(Deck{})) {
        CAPTURE(setting.key);
        CHECK(help.find("\n  " + setting.key + " (") != std::string::npos);
    }
    CHECK(help.find("\n[optimizer]\n  optimizer.name (adamw) adamw | adam | ") !=
          std::string::npos);
}

TEST_CASE("each key is listed once, with what its values can be") {
    auto const keys = listed_keys();
    auto const key = [&](std::string const& name) {
        REQUIRE(std::ranges::count(keys, name, &ListedKey::name) == 1);
        return *std::ranges::find(keys, name, &ListedKey::name);
    };
    for (auto const& setting : settings(Deck{})) {
        CAPTURE(setting.key);
        CHECK(key(setting.key).otherwise == setting.value);
    }
    CHECK(key("run.placement").choices == std::vector<std::string>{"even", "speed"});
    CHECK(key("run.deterministic").is_flag);
    CHECK_FALSE(key("run.seed").is_flag);
    CHECK(key("data.train").names == Named::samples);
    CHECK(key("model.*").is_open);
}

TEST_CASE("an error of the command line says that it came from there") {
    DeckSource source;
    source.take_options({"--data.batch", "-3"});
    auto const error = test::error_of([&] { source.parse(); });
    CHECK(error.code() == ExitCode::usage);
    CHECK(test::says(error, "data.batch = -3 (command line)"));
    CHECK(test::error_of([&] { source.take_options({"--data.batch"}); }).code() == ExitCode::usage);
}

TEST_CASE("numbers must be whole, finite and nothing more") {
    for (std::string const value : {"1.5", "1e3", "", "12x", "99999999999999999999"}) {
        CAPTURE(value);
        DeckSource source;
        source.set("data.batch", {value, "deck.ini:3"});
        auto const error = test::error_of([&] { source.parse(); });
        CHECK(test::says(error, "deck.ini:3"));
        CHECK(test::says(error, "a whole number from 1 to 4194304"));
    }
    for (std::string const value : {"nan", "inf", "-0.1", "0,1", "fast"}) {
        CAPTURE(value);
        DeckSource source;
        source.set("optimizer.learning-rate", {value, "deck.ini:3"});
        CHECK(test::error_of([&] { source.parse(); }).code() == ExitCode::usage);
    }
}

TEST_CASE("an included deck may lie elsewhere, and errors name the deck that a value stands in") {
    test::ScratchDir const scratch;
    make_directories(scratch / "below");
    write_text_durably(scratch / "below/base.ini", "[data]\nbatch = none\nworkers = 9\n");
    write_text_durably(scratch / "deck.ini", "include = below/base.ini\n[data]\nworkers = 3\n");
    DeckSource source;
    source.read(scratch / "deck.ini");
    CHECK(source.values().at("data.workers").value == "3");
    auto const error = test::error_of([&] { source.parse(); });
    CHECK(test::says(error, (scratch / "below/base.ini").string() + ":2"));

    DeckSource missing;
    CHECK(test::error_of([&] { missing.read(scratch / "none.ini"); }).code() == ExitCode::no_input);
    write_text_durably(scratch / "bad.ini", "[data\nbatch\n");
    auto const broken = test::error_of([&] { missing.read(scratch / "bad.ini"); });
    CHECK(broken.code() == ExitCode::usage);
    CHECK(test::says(broken, "bad.ini"));
}

TEST_CASE("an own key that is mistyped is named with the nearest, a bad value with its key") {
    std::vector<OwnKey> const known{
        {"hidden", "64, 32", ""}, {"dropout", "0.25", ""}, {"batch-norm", "true", ""}};
    auto const error = test::error_of([&] { OwnValues("model", {{"droput", "0.5"}}, known); });
    CHECK(error.code() == ExitCode::usage);
    CHECK(test::says(error, "model.droput"));
    CHECK(test::says(error, "Did you mean model.dropout?"));

    OwnValues const values("model", {{"dropout", "1.5"}}, known);
    CHECK(values.integers("hidden", 1) == std::vector<std::int64_t>{64, 32});
    CHECK(values.boolean("batch-norm"));
    CHECK(values.text("hidden") == "64, 32");
    auto const range = test::error_of([&] { values.number("dropout", 0, 1); });
    CHECK(test::says(range, "model.dropout = 1.5"));
    CHECK(test::says(range, "a number from 0 to 1"));
}
