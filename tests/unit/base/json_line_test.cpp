#include "base/json_line.hpp"

#include <cmath>

#include "catch.hpp"

using namespace lockstep;

TEST_CASE("a record tells its values, and nothing for those of another kind") {
    JsonLine const line(
        R"({"event": "step", "step": 12, "loss": 0.5, "best": true, "hosts": ["a", 3]})");
    CHECK(line.is_record());
    CHECK(line.text("event") == "step");
    CHECK(line.whole("step", -1) == 12);
    CHECK(line.number("loss") == 0.5);
    CHECK(line.flag("best", false));
    CHECK(line.texts("hosts") == std::vector<std::string>{"a", ""});
    CHECK(line.numbers() == std::map<std::string, double>{{"loss", 0.5}, {"step", 12}});

    CHECK(line.text("step").empty());
    CHECK(line.whole("event", -1) == -1);
    CHECK(std::isnan(line.number("best")));
    CHECK_FALSE(line.flag("step", false));
    CHECK(line.texts("event").empty());
    CHECK(line.whole("none", 7) == 7);
}

TEST_CASE("what is no record tells nothing") {
    for (char const* text : {"", "{", "[1]", "5", "null", "\xff\xfe", R"({"a": 1} more)"}) {
        JsonLine const line(text);
        CHECK_FALSE(line.is_record());
        CHECK(line.text("event").empty());
        CHECK(line.numbers().empty());
    }
    CHECK(JsonLine(R"({"step": 1e300, "loss": null})").whole("step", -1) == -1);
}
