#include "serve/step_lines.hpp"

#include <cmath>
#include <string>

#include "catch.hpp"

using namespace lockstep::serve;

namespace {

std::string line(int step, std::string const& more = "") {
    return "{\"event\":\"step\",\"step\":" + std::to_string(step) +
           ",\"loss\":" + std::to_string(step) + ".5" + more +
           ",\"hash\":\"a1\",\"time\":\"1970-01-01T00:00:0" + std::to_string(step % 10) + "Z\"}";
}

} // namespace

TEST_CASE("lines like the one before are read, and those that differ") {
    Series series;
    StepLines lines(series);
    CHECK(lines.take(line(1)));
    CHECK(lines.take(line(2)));
    CHECK(lines.take(line(3, ",\"skipped\":true")));
    CHECK(lines.take(line(4, ",\"skipped\":false")));
    CHECK(lines.take(line(5, ",\"skipped\":null")));
    CHECK(lines.take(line(6)));
    CHECK(lines.take(R"({ "step": 7, "event" : "step" , "loss" : 1e2 } )"));
    REQUIRE(series.rows() == 7);
    CHECK(series.times()[1] == 2);
    auto const* const loss = series.column("loss");
    REQUIRE(loss != nullptr);
    CHECK(loss->values[1] == 2.5F);
    CHECK(loss->values[6] == 100);
    auto const& skipped = series.column("skipped")->values;
    CHECK((skipped[2] == 1 && skipped[3] == 0 && std::isnan(skipped[4]) && std::isnan(skipped[5])));
}

TEST_CASE("what only looks like the line before is none") {
    Series series;
    StepLines lines(series);
    REQUIRE(lines.take(line(1)));
    for (std::string const& odd :
         {line(2) + "x", line(2).substr(0, 40), line(-2), line(2, ",\"a\":[1]"), std::string(),
          line(2, ",\"a\":\"\\n\""), line(2, ",\"a\":NaN"),
          std::string(R"({"event":"epoch","step":2,"loss":1})"),
          std::string(R"({"event":"step","loss":1})"),
          std::string(R"({"event":"step","step":1e300,"loss":1})")}) {
        INFO(odd);
        CHECK_FALSE(lines.take(odd));
        CHECK(series.rows() == 1);
    }
}

TEST_CASE("a large text gives the same stretches as its lines one by one") {
    std::string text;
    for (int step = 1; step <= 60000; ++step) {
        text += line(step) + "\n";
        if (step % 9999 == 0) {
            text += "{\"event\":\"validation\"}\n\n";
        }
    }
    auto const stretches = stretches_of(text);
    Series all;
    std::size_t others = 0;
    for (auto const& stretch : stretches) {
        all.append(stretch.rows);
        others += stretch.other.empty() ? 0 : 1;
        CHECK((stretch.rows.rows() == 0 || stretch.last_step.starts_with("{\"event\":\"step\"")));
    }
    CHECK(text.size() > (4 << 20)); // several threads had a part
    CHECK(others == 6);
    REQUIRE(all.rows() == 60000);
    for (std::size_t row = 0; row < all.rows(); ++row) {
        REQUIRE(all.steps()[row] == static_cast<std::int64_t>(row) + 1);
        REQUIRE(all.columns()[0].values[row] == static_cast<float>(row + 1) + 0.5F);
    }
}
