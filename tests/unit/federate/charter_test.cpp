#include "base/text.hpp"
#include "federate/deck_keys.hpp"
#include "federate/sound_charter.hpp"

#include <nlohmann/json.hpp>

#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "error_of.hpp"

using namespace lockstep;
using namespace lockstep::federate;

namespace {

Charter sound_charter() {
    Charter charter;
    charter.id = "0123";
    return charter;
}

/// A charter of a coordinator who has written what he wants, instead of what `init` would.
std::string written(std::string const& field, nlohmann::json const& value) {
    auto json = nlohmann::json::parse(sound_charter().text());
    json[field] = value;
    return json.dump();
}

ExitCode received(std::string const& text) {
    return test::code_of([&] { require_sound(Charter::of_text(text)); });
}

} // namespace

TEST_CASE("a charter that init would refuse is refused by those who receive it, by its field") {
    CHECK(received(sound_charter().text()) == ExitCode::ok);
    double const large = 1e308;
    std::vector<std::pair<std::string, std::vector<nlohmann::json>>> const fields{
        {"id", {"", "x y", "ABC", "..", 7, std::string(65, 'a'), "a\nb"}},
        {"deck",
         {7, nullptr, "[run]\nreplicas = -1\n", "[no]\nkey = 1\n", "[privacy]\nnoise = 1\n",
          "[prune]\npattern = 2:4\n", "[quantise]\naware = true\n"}},
        {"strategy", {"", "mean", 1, "scaffold", "fedprox"}},
        {"server_rate", {-1, "1", nullptr, true}},
        {"server_epsilon", {0, -1, 0.1}},
        {"proximal", {-1, 1}},
        {"rounds", {0, -1, 1.5, "9", std::numeric_limits<std::uint64_t>::max()}},
        {"min_sites", {0, -3, 2.5, large}},
        {"threshold", {1, -5, 3, 256, 1e30}},
        {"participation", {0, -1, 1.1, large}},
        {"range", {0, -4, 1e10, large}},
        {"clip", {-1, nullptr}},
        {"noise", {-1, 1}}, // without --clip
        {"delta", {0, -1, 0.7, 1}},
        {"budget", {-1, 8}},
        {"accountant", {"", "gdp", "prv"}},
        {"expected_sites", {-1, 5, 0.5}},
    };
    std::set<std::string> tried{"--secure"};
    for (auto const& [field, values] : fields) {
        for (auto const& value : values) {
            INFO(field << " " << value);
            CHECK(received(written(field, value)) == ExitCode::data);
        }
        auto option = concat("--", field == "budget" ? "epsilon" : field);
        std::replace(option.begin(), option.end(), '_', '-');
        tried.insert(option);
    }
    for (auto const& [option, value] : sound_charter().options()) {
        INFO("every option has a row above: " << option);
        CHECK(tried.contains(option));
    }
    for (auto const* const text : {"1e999", "-1e999", "NaN", "Infinity"}) {
        auto json = written("noise", "HERE");
        json.replace(json.find("\"HERE\""), 6, text);
        INFO(text);
        CHECK(received(json) == ExitCode::data);
    }
    auto const error =
        test::error_of([] { require_sound(Charter::of_text(written("threshold", -5))); });
    CHECK(test::says(error, "--threshold -5"));
    CHECK(test::says(error, "not sound"));
}

TEST_CASE("every key of the deck is the federation's or the site's own") {
    std::set<std::string> shared;
    for (auto const& setting : config::settings({})) {
        INFO(setting.key << " has a row in src/federate/deck_keys.cpp");
        auto const part = part_of(setting);
        REQUIRE(part);
        if (part == Part::result && setting.at_resume != config::AtResume::forced) {
            shared.insert(setting.key);
        }
    }
    CHECK(shared == std::set<std::string>{"privacy.epsilon", "train.epochs", "train.minimum-change",
                                          "train.patience", "train.steps"});
}

TEST_CASE("of a charter's deck a site takes only what decides the result") {
    auto charter = sound_charter();
    charter.deck = "[run]\nseed = 7\ndirectory = /tmp/x\nthreads = 2\ndevice = cuda:1\n"
                   "[data]\ntrain = /secret.h5\nvalidation = 10 %\ncache = local:/tmp/x\n"
                   "batch = 4\ntest = a.h5\n"
                   "[model]\nname = export\nfile = /m.pt2\noperators = /o.so\n"
                   "compiled = prefer\nhidden = 3\nweights = /w.h5\n"
                   "[distill]\nteacher = /t.pt\nteacher-deck = /t.ini\noutputs =\nweight = 0.5\n"
                   "[privacy]\nkey = /k\n"
                   "[checkpoint]\nlocal = /tmp/x\nresume = /c.h5\n"
                   "[monitor]\nlog-every = 5\n[profile]\nsteps = 1-2\n[train]\nsteps = 5\n";
    std::set<std::string> keys;
    auto const shared = shared_deck(charter, "the deck");
    for (auto const& [key, value] : shared.values()) {
        keys.insert(key);
    }
    CHECK(keys == std::set<std::string>{"run.seed", "run.threads", "data.validation", "data.batch",
                                        "model.name", "model.hidden", "distill.weight",
                                        "train.steps"});
    std::set<std::string> code;
    for (auto const& [key, value] : keys_of_code(charter)) {
        code.insert(key);
    }
    CHECK(code == std::set<std::string>{"model.file", "model.operators", "model.compiled",
                                        "distill.teacher", "distill.teacher-deck"});
    charter.deck = "[data]\nvalidation = /of/another/host.h5\n[model]\ncompiled = none\n";
    CHECK(shared_deck(charter, "the deck").values().empty());
    CHECK(keys_of_code(charter).empty());
}

TEST_CASE("a federation's targets are as they are stored") {
    config::Deck deck;
    CHECK_NOTHROW(require_fit(sound_charter(), deck));
    deck.data.normalise_targets = true;
    auto const error = test::error_of([&] { require_fit(sound_charter(), deck); });
    CHECK(error.code() == ExitCode::usage);
    CHECK(test::says(error, "data.normalise-targets cannot be used in a federation's deck"));
}

TEST_CASE(
    "a federation freezes parameters for good and without noise, and scaffold knows one rate") {
    struct Case {
        config::Optimizer optimizer;
        double noise;
        std::string strategy;
        std::string refused; ///< empty: it is not
    };
    config::Optimizer const frozen{.freeze = "features.*"};
    config::Optimizer const thawed{.freeze = "features.*", .thaw_epoch = 1};
    for (auto const& [optimizer, noise, strategy, refused] : std::vector<Case>{
             {frozen, 0, "fedavg", ""},
             {frozen, 1, "fedavg", "optimizer.freeze cannot be combined with --noise"},
             {thawed, 0, "fedavg", "optimizer.thaw-epoch cannot be used"},
             {{.thaw_epoch = 1}, 1, "fedavg", ""}, // freezes nothing
             {{.groups = "a.* rate 2"}, 1, "fedavg", ""},
             {{.name = "sgd", .groups = "a.* rate 2"}, 0, "scaffold", "optimizer.groups"},
             {{.name = "sgd", .layer_decay = 0.5}, 0, "scaffold", "optimizer.layer-decay"},
             {{.name = "sgd", .freeze = "features.*"}, 0, "scaffold", ""}}) {
        CAPTURE(strategy, refused);
        auto charter = sound_charter();
        charter.noise = noise;
        charter.strategy = strategy;
        config::Deck deck;
        deck.optimizer = optimizer;
        if (refused.empty()) {
            CHECK_NOTHROW(require_fit(charter, deck));
            continue;
        }
        auto const error = test::error_of([&] { require_fit(charter, deck); });
        CHECK(error.code() == ExitCode::usage);
        CHECK(test::says(error, refused));
    }
}

TEST_CASE("a federation's deck has no adapters") {
    config::Deck deck;
    deck.model.lora_rank = 4;
    auto const error = test::error_of([&] { require_fit(sound_charter(), deck); });
    CHECK(error.code() == ExitCode::usage);
    CHECK(test::says(error, "model.lora-rank = 4 cannot be used in a federation's deck"));
}
