#include <algorithm>
#include <cmath>
#include <vector>

#include "catch.hpp"
#include "serve/fields.hpp"
#include "serve/series.hpp"
#include "serve/thinning.hpp"

using namespace lockstep::serve;

namespace {

void append(Series& series, std::int64_t step, double loss) {
    std::vector<Field> const fields{{.key = "loss", .number = loss, .kind = Field::Kind::number}};
    series.append(step, static_cast<double>(step) * 10, fields);
}

} // namespace

TEST_CASE("a flat record is split into its fields") {
    std::vector<Field> fields;
    REQUIRE(flat_fields(R"({"event":"step", "loss":-1.5e2,"skipped":true,"no":null})", fields));
    REQUIRE(fields.size() == 4);
    CHECK(fields[0].text == "step");
    CHECK(fields[1].number == -150);
    CHECK(fields[2].number == 1);
    CHECK(fields[3].kind == Field::Kind::null);
    for (char const* line :
         {"", "{", "{}", R"({"a":1)", R"({"a":1}x)", R"({"a":nan})", R"({"a":[1]})",
          R"({"a":"\n"})", R"({"a" 1})", R"({"a":-})", R"({"a":1e999})"}) {
        INFO(line);
        CHECK_FALSE(flat_fields(line, fields));
    }
}

TEST_CASE("times are read as UTC") {
    CHECK(utc_seconds("1970-01-02T00:00:01.500Z") == 86401.5);
    CHECK(utc_seconds("2024-02-29T12:00:00Z") == 1709208000);
    CHECK(std::isnan(utc_seconds("2024-02-29 12:00:00Z")));
    CHECK(std::isnan(utc_seconds("2024-02-29T12:00:xxZ")));
    CHECK(std::isnan(utc_seconds("")));
}

TEST_CASE("a step that is told again takes back what was told of later ones") {
    Series series;
    for (int step = 1; step <= 10; ++step) {
        append(series, step, step);
    }
    auto const before = series.revision();
    append(series, 6, -6);
    REQUIRE(series.rows() == 6);
    CHECK(series.column("loss")->values.back() == -6);
    CHECK(series.revision() > before);
    series.drop_after(2);
    CHECK(series.rows() == 2);
    CHECK(series.column("loss")->values.size() == 2);
}

TEST_CASE("few rows are told one by one, with a neighbour at either side") {
    Series series;
    for (int step = 1; step <= 10; ++step) {
        append(series, step, step);
    }
    auto const part =
        thinned(series, {.from = 4, .to = 6, .buckets = 100, .columns = {"loss", "none"}});
    CHECK(part.whole);
    CHECK(part.x == std::vector<double>{3, 4, 5, 6, 7});
    REQUIRE(part.curves.size() == 1);
    CHECK(part.curves[0].mean.size() == 5);
    auto const by_time =
        thinned(series, {.axis = Axis::time, .from = 95, .to = 99, .buckets = 9, .columns = {}});
    CHECK(by_time.x == std::vector<double>{90, 100});
}

TEST_CASE("many rows are told by buckets, and no peak is lost") {
    Series series;
    for (int step = 1; step <= 100000; ++step) {
        append(series, step, step == 77777 ? 1e6 : 1);
    }
    auto const all = thinned(series, {.from = 1, .to = 1e5, .buckets = 100, .columns = {"loss"}});
    CHECK_FALSE(all.whole);
    CHECK(all.x.size() <= 101);
    CHECK(all.x.size() >= 99);
    float largest = 0;
    for (auto const value : all.curves[0].largest) {
        largest = std::max(largest, value);
    }
    CHECK(largest == 1e6F);
    CHECK(json_text(all).starts_with("{\"whole\":false,\"x\":["));
}

TEST_CASE("values that are not finite are null in JSON") {
    CHECK(json_list(std::vector<double>{1, NAN, HUGE_VAL}) == "[1,null,null]");
}
