#include "search/space.hpp"

#include "catch.hpp"
#include "error_of.hpp"
#include "spaces.hpp"

using namespace lockstep;
using test::space_of;

TEST_CASE("values come from their part of the line") {
    auto const space = space_of({{"space.a.b", "log-uniform(1e-4, 1)"},
                                 {"space.a.c", "integer(1, 4)"},
                                 {"space.a.d", "choice(x, \"1, 2\")"},
                                 {"space.a.e", "list(8, 16, 32)"},
                                 {"space.a.f", "fixed value"}});
    CHECK(space.values({0, 0, 0, 0, 0}) ==
          search::Values{
              {"a.b", "0.0001"}, {"a.c", "1"}, {"a.d", "x"}, {"a.e", "8"}, {"a.f", "fixed value"}});
    CHECK(space.values({1, 1, 1, 1, 1}) ==
          search::Values{
              {"a.b", "1"}, {"a.c", "4"}, {"a.d", "1, 2"}, {"a.e", "32"}, {"a.f", "fixed value"}});
    CHECK(space.values({0.5, 0.5, 0.5, 0.5, 0.5}).at("a.b") == "0.01");
    for (auto const& dimension : space.dimensions()) {
        for (std::int64_t level = 0; level < dimension.levels(); ++level) {
            auto const text = dimension.text(dimension.unit_of_level(level));
            CHECK((dimension.texts.empty() || dimension.texts.at(level) == text));
        }
    }
}

TEST_CASE("keys apply where their conditions hold") {
    auto const space = space_of({{"space.m.a", "choice(x, y)"},
                                 {"space.m.b", "choice(1, 2) if m.a = y"},
                                 {"space.m.c", "uniform(0, 1) if m.a in (y, x) and m.b = 2"}});
    CHECK(space.values({0, 0.9, 0.5}) == search::Values{{"m.a", "x"}});
    CHECK(space.values({0.9, 0, 0.5}) == search::Values{{"m.a", "y"}, {"m.b", "1"}});
    CHECK(space.values({0.9, 0.9, 0.5}).size() == 3);
}

TEST_CASE("constraints compare sums of products") {
    auto const space =
        space_of({{"space.a.b", "integer(1, 10)"},
                  {"space.a.c-d", "integer(1, 10)"},
                  {"search.constraints", "a.b * a.c-d + 1 <= 21; 2 * a.b - a.c-d > 0"}});
    CHECK(space.allows({{"a.b", "4"}, {"a.c-d", "5"}}));
    CHECK_FALSE(space.allows({{"a.b", "5"}, {"a.c-d", "5"}}));
    CHECK_FALSE(space.allows({{"a.b", "2"}, {"a.c-d", "5"}}));
    CHECK(space.allows({{"a.b", "10"}})); // the other key does not apply
    for (std::uint64_t trial = 0; trial < 50; ++trial) {
        CHECK(space.allows(space.values(space.draw_point(1, trial))));
    }
}

TEST_CASE("what is no space is refused with file, line and key") {
    using Keys = test::SpaceKeys;
    auto const good = std::pair<std::string const, std::string>("space.a.a", "choice(1, 2)");
    for (auto const& [keys, phrase] : std::vector<std::pair<Keys, std::string>>{
             {{}, "no keys to search"},
             {{{"space.a.b", "uniform(1)"}}, "two numbers"},
             {{{"space.a.b", "uniform(1, nan)"}}, "two numbers"},
             {{{"space.a.b", "uniform(1, inf)"}}, "two numbers"},
             {{{"space.a.b", "uniform(2, 1)"}}, "below the second"},
             {{{"space.a.b", "log-uniform(0, 1)"}}, "above 0"},
             {{{"space.a.b", "integer(0.5, 2)"}}, "whole numbers"},
             {{{"space.a.b", "integer(1, 1e300)"}}, "whole numbers"},
             {{{"space.a.b", "unifrom(1, 2)"}}, "Did you mean uniform?"},
             {{{"space.a.b", "choice(1, 2"}}, "not closed"},
             {{{"space.a.b", "choice()"}}, "1 to 1000 values"},
             {{{"space.a.b", "choice(1, 1)"}}, "twice"},
             {{{"space.a.b", "choice(\"1, 2)"}}, "quote"},
             {{{"space.a.b", "list(1, 2) if"}, good}, "only a condition may follow"},
             {{{"space.a.b", "list(1, 2) if x"}, good}, "not a condition"},
             {{{"space.a.b", "list(1, 2) if a.c = 1"}, good}, "a.c is not a key of [space]"},
             {{{"space.a.b", "list(1, 2) if a.a = 3"}, good}, "is never 3"},
             {{{"space.a.b", "list(1, 2) if a.b = 1"}}, "cycle"},
             {{good, {"search.constraints", "a.a"}}, "has none of"},
             {{good, {"search.constraints", "a.a <="}}, "empty"},
             {{good, {"search.constraints", "a.z < 1"}}, "not a key of [space]"},
             {{good, {"search.constraints", "a.a ^ 2 < 1"}}, "not a key of [space]"},
             {{good, {"search.strategy", "best"}}, "one of grid, random"},
             {{good, {"search.trials", "0"}}, "a whole number from 1"},
             {{good, {"search.trails", "5"}}, "Did you mean search.trials?"},
             {{good, {"search.goals", "accuracy"}}, "max or min"},
             {{good, {"search.goals", "a max, a min"}}, "each once"},
             {{good, {"search.goals", "a max, b min"}, {"search.strategy", "tpe"}},
              "several goals"},
             {{good, {"search.minimum-share", "nan"}}, "0.0001"},
             {{good, {"run.seed", "1"}}, "[search] and [space] only"}}) {
        auto const error = test::error_of([&, &keys = keys] { space_of(keys); });
        INFO(error.what());
        CHECK(error.code() == ExitCode::usage);
        CHECK(std::string(error.what()).find(phrase) != std::string::npos);
    }
    auto const few =
        space_of({{"space.a.a", "uniform(0, 1)"}, {"search.constraints", "a.a < 0.0001"}});
    for (std::uint64_t trial = 0; trial < 10; ++trial) {
        CHECK(few.draw_point(1, trial).front() < 0.0001);
    }
    auto const none = space_of({good, {"search.constraints", "a.a > 2"}});
    CHECK(test::error_of([&] { none.draw_point(0, 0); }).code() == ExitCode::usage);
}

TEST_CASE("hostile spaces are refused and tell where they stand") {
    for (auto const& [value, why] : std::vector<std::pair<std::string, std::string>>{
             {"uniform(nan, 1)", "two numbers"},
             {"uniform(0, inf)", "two numbers"},
             {"uniform(-1.7e308, 1.7e308)", "too far"},
             {"integer(0, 9223372036854775807)", "below 9e15"},
             {"choice()", "1 to 1000 values"},
             {"choice(x, x)", "a value twice"},
             {"list(0.1, 0.2, 1e-1)", "a value twice"},
             {"uniform(0.1234567, 0.1234568)", "six digits"},
             {"choice(\"x, y)", "quote is not closed"},
             {"uniform(0, 1", "bracket is not closed"},
             {"uniform(0, 1) if a.b = 1", "cycle"},
             {"uniform(0, 1) if a.c = 1", "not a key of [space]"},
             {"uniform(0, 1) if a.b", "is not a condition"},
             {"uniform(0, 1) if a.b in ()", "names no value"}}) {
        INFO(value);
        auto const error = test::error_of([&] { test::space_of({{"space.a.b", value}}); });
        CHECK(error.code() == ExitCode::usage);
        CHECK(std::string(error.what()).find(why) != std::string::npos);
        CHECK(std::string(error.what()).find("a.b") != std::string::npos);
    }
    test::SpaceKeys many;
    for (int at = 0; at < 1001; ++at) {
        many["space.a.b" + std::to_string(at)] = "uniform(0, 1)";
    }
    CHECK(test::error_of([&] { test::space_of(many); }).code() == ExitCode::usage);
    // A range of more orders than a double has between its ends.
    auto const wide = test::space_of({{"space.a.b", "log-uniform(1e-300, 1e300)"}});
    CHECK(wide.values({0.5}).at("a.b") == "1");
}
