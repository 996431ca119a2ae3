#include "base/arguments.hpp"
#include "lockstep/base/error.hpp"

#include <cstdlib>
#include <string>

#include "catch.hpp"

using namespace lockstep;

namespace {

/// A command with an option of every kind.
struct Told {
    bool json = false;
    bool quiet = false;
    std::int64_t steps = 20;
    int devices = 0; ///< not said
    double watts = 0;
    std::string mode;
    std::string inputs = "inputs";
    std::vector<std::string> formats{"png"};
    std::vector<std::string> classes;
    std::vector<std::int64_t> sizes;
    std::vector<double> shares;
};

Options options_of(Told& told) {
    return {.command = "lockstep try",
            .positions = {"DECK [FILE]", 1, 2},
            .about = "Does nothing.",
            .rows = {option::flag("--json", "records", told.json),
                     option::flag("--quiet", "no words", told.quiet),
                     option::whole("--steps N", "that are measured", told.steps),
                     option::whole("--devices N", "of a host", told.devices, {.max = 64}),
                     option::real("--watts W", "of a rank", told.watts),
                     option::one_of("--mode", {"dp", "ddp"}, "how", told.mode),
                     option::text("--inputs NAME", "of a dataset", told.inputs),
                     option::some_of("--format", {"png", "pdf"}, "of pictures", told.formats),
                     option::texts("--classes A,B", "names", told.classes),
                     option::wholes("--sizes A,B", "of arrays", told.sizes),
                     option::reals("--split A,B", "shares", told.shares)},
            .exclusive = {"--json", "--quiet"},
            .nearest_key = [](std::string const& name) {
                return std::string(name == "epochs" ? "train.epochs" : "");
            }};
}

Told told(std::vector<std::string> const& words, Words* rest = nullptr) {
    Told read;
    auto found = options_of(read).parse(words);
    if (rest != nullptr) {
        *rest = found;
    }
    return read;
}

ErrorText refused(std::vector<std::string> const& words) {
    try {
        told(words);
    } catch (Error const& error) {
        CHECK(error.code() == ExitCode::usage);
        return error.text();
    }
    return {};
}

std::string help_in(Options const& options, char const* columns) {
    ::setenv("COLUMNS", columns, 1);
    auto text = options.help();
    ::unsetenv("COLUMNS");
    return text;
}

} // namespace

TEST_CASE("options of every kind find their places, wherever they stand") {
    Words rest;
    auto const read = told(
        {"--steps=50", "a.ini", "--json",    "--devices",         "8",        "--watts", "1.5",
         "--mode",     "ddp",   "--classes", "cat,\"dog, wolf\"", "--sizes",  "1M, 64K", "--split",
         "0.8,0.2",    "b",     "--format",  "png,pdf",           "--inputs", ""},
        &rest);
    CHECK(read.json);
    CHECK(!read.quiet);
    CHECK(read.steps == 50);
    CHECK(read.devices == 8);
    CHECK(read.watts == 1.5);
    CHECK(read.mode == "ddp");
    CHECK(read.inputs.empty());
    CHECK(read.formats == std::vector<std::string>{"png", "pdf"});
    CHECK(read.classes == std::vector<std::string>{"cat", "dog, wolf"});
    CHECK(read.sizes == std::vector<std::int64_t>{1 << 20, 64 << 10});
    CHECK(read.shares == std::vector<double>{0.8, 0.2});
    CHECK(rest.positions == std::vector<std::string>{"a.ini", "b"});
}

TEST_CASE("keys of a deck pass by, each with its value, whatever that looks like") {
    Words rest;
    auto const read = told(
        {"--run.name", "--json", "a.ini", "--data.test=", "--steps", "3", "--run.seed"}, &rest);
    CHECK(!read.json);
    CHECK(read.steps == 3);
    CHECK(rest.keys ==
          std::vector<std::string>{"--run.name", "--json", "--data.test=", "--run.seed"});
    CHECK(rest.all().front() == "a.ini");
    CHECK(rest.all().size() == 5);
}

TEST_CASE("of several the last counts, and an empty value of a number is none") {
    CHECK(told({"a", "--steps", "3", "--steps=4"}).steps == 4);
    CHECK(told({"a", "--steps", "", "--mode", ""}).steps == 20);
}

TEST_CASE("what is wrong is said in the same words for every command") {
    auto const usage = std::string("Usage: lockstep try DECK [FILE] [OPTION]... "
                                   "[--section.key VALUE]...");
    auto const check = [](ErrorText const& error, std::string const& what, std::string const& why,
                          std::string const& next) {
        CHECK(error.what == what);
        CHECK(error.why == why);
        CHECK(error.next == next);
    };
    auto const no_key =
        std::string("it is neither an option nor a key of the deck (--section.key VALUE)");
    check(refused({"a", "--step", "3"}), "unknown option --step", no_key,
          "Did you mean --steps? " + usage);
    check(refused({"a", "--nothing-like-it"}), "unknown option --nothing-like-it", no_key, usage);
    check(refused({"a", "--epochs", "5"}), "unknown option --epochs", no_key,
          "Did you mean --train.epochs? " + usage);
    check(refused({"a", "--steps"}), "option --steps", "its value is missing", "Write --steps N");
    check(refused({"a", "--json=1"}), "option --json=1", "it takes no value", "Write --json");
    check(refused({"a", "--steps", "0"}), "--steps 0", "expected a whole number of at least 1",
          usage);
    check(refused({"a", "--steps", "25G"}), "--steps 25G", "expected a whole number of at least 1",
          usage);
    check(refused({"a", "--steps", "9223372036854775807K"}), "--steps 9223372036854775807K",
          "expected a whole number of at least 1", usage);
    check(refused({"a", "--devices", "65"}), "--devices 65", "expected a whole number from 1 to 64",
          usage);
    check(refused({"a", "--watts", "-1"}), "--watts -1", "expected a number of at least 0", usage);
    check(refused({"a", "--watts", "nan"}), "--watts nan", "expected a number of at least 0",
          usage);
    check(refused({"a", "--split", "0.8;0.2"}), "--split 0.8;0.2",
          "expected numbers separated by commas", usage);
    check(refused({"a", "--mode", "ring"}), "--mode ring", "there is no such value",
          "Valid values: dp, ddp");
    check(refused({"a", "--mode", "ddq"}), "--mode ddq", "there is no such value",
          "Did you mean ddp? Valid values: dp, ddp");
    check(refused({"a", "-steps", "3"}), "unknown option -steps", "options begin with two dashes",
          "Did you mean --steps? " + usage);
    check(refused({"a", "-train.epochs=3"}), "unknown option -train.epochs=3",
          "options begin with two dashes", "Did you mean --train.epochs? " + usage);
    check(refused({"a", "-data.some", "3"}), "unknown option -data.some",
          "options begin with two dashes", "Did you mean --data.some? " + usage);
    Words rest;
    told({"a", "-3"}, &rest); // a number
    CHECK(rest.positions == std::vector<std::string>{"a", "-3"});
    check(refused({"a", "--format", "png,bmp"}), "--format png,bmp", "there is no such value",
          "Valid values: png, pdf");
    check(refused({"a", "--json", "--quiet"}), "--json and --quiet",
          "these options exclude each other", "Give only one of these options");
    check(refused({}), "0 arguments", "an argument is missing", usage);
    check(refused({"a", "b", "c"}), "3 arguments", "there are too many", usage);
}

TEST_CASE("an option without a default must be there") {
    int keep = 0;
    Options const options{.command = "lockstep prune",
                          .positions = {"RUN", 1, 1},
                          .rows = {option::required(option::whole("--keep N", "that stay", keep))}};
    CHECK(options.usage() == "lockstep prune RUN --keep N");
    auto const sentence =
        "--keep is missing: it has no default. Usage: lockstep prune RUN --keep N";
    CHECK_THROWS_WITH(options.parse({"a"}), sentence);
    CHECK_THROWS_WITH(options.parse({"a", "--keep", ""}), sentence);
    options.parse({"a", "--keep", "3"});
    CHECK(keep == 3);
}

TEST_CASE("help is made of the rows: usage, meaning, defaults") {
    double interval = 1;
    bool once = false;
    std::string longest = "x";
    Options const options{
        .command = "lockstep watch",
        .positions = {"RUN", 1, 1},
        .about =
            "What a run does just now, or has done: its progress, loss, metrics, rates, memory, "
            "what a step's time goes into.",
        .rows = {
            option::flag("--once", "print it once", once),
            option::real("--interval SECONDS", "between two looks", interval, {0.1, 3600}),
            option::text("--a-very-long-option WITH-A-LONG-VALUE", "is on its own line", longest)}};
    CHECK(
        help_in(options, "100") ==
        R"(lockstep watch RUN [--once] [--interval SECONDS] [--a-very-long-option WITH-A-LONG-VALUE]
    What a run does just now, or has done: its progress, loss, metrics, rates, memory, what a step's
    time goes into.
        --once              print it once
        --interval SECONDS  between two looks (1)
        --a-very-long-option WITH-A-LONG-VALUE
                            is on its own line (x)
)");
    CHECK(help_in(options, "60") == R"(lockstep watch RUN [--once] [--interval SECONDS]
               [--a-very-long-option WITH-A-LONG-VALUE]
    What a run does just now, or has done: its progress,
    loss, metrics, rates, memory, what a step's time goes
    into.
        --once              print it once
        --interval SECONDS  between two looks (1)
        --a-very-long-option WITH-A-LONG-VALUE
                            is on its own line (x)
)");
    Told read;
    auto const text = options_of(read).help();
    for (auto const& row : options_of(read).rows) {
        CHECK(text.find("        " + row.name) != std::string::npos);
    }
    CHECK(text.find("--devices N") != std::string::npos);
    CHECK(text.find("(0)") == std::string::npos); // what is not said is no default
    CHECK(text.find("        --section.key VALUE") != std::string::npos);
}
