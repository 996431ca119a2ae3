#include "serve/fields.hpp"
#include "serve/series.hpp"
#include "serve/thinning.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "catch.hpp"

using namespace lockstep::serve;

namespace {

void append(Series& series, std::int64_t step, double loss) {
    series.place_of("loss");
    std::vector<float> const row{static_cast<float>(loss)};
    series.append(step, static_cast<double>(step) * 10, row);
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

TEST_CASE("numbers are read as JSON writes them") {
    for (std::string const text :
         {"0", "-0", "7", "-12", "123456789", "9007199254740991", "0.5", "-3.25",
          "1234567.8901234567", "0.0024489996867709707", "2.2724057734012604", "1e5", "-1.5e-7",
          "12345678901234567890123", "0.00000000000000000000001234", "1E+3"}) {
        std::string_view rest = text;
        double number = 0;
        INFO(text);
        REQUIRE(take_number(rest, number));
        CHECK(rest.empty());
        CHECK(number == Approx(std::stod(text)).epsilon(1e-15).margin(0));
    }
    for (std::string const text : {"", "-", "x", ".5", "+1", "nan", "-inf"}) {
        std::string_view rest = text;
        double number = 0;
        INFO(text);
        CHECK_FALSE(take_number(rest, number));
        CHECK(rest == text);
    }
    std::string_view rest = "12,";
    double number = 0;
    CHECK((take_number(rest, number) && number == 12 && rest == ","));
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

TEST_CASE("a series is appended to another, by the names of columns") {
    Series series;
    append(series, 1, 1);
    append(series, 5, 5);
    Series more;
    more.place_of("other");
    more.append(3, 0, std::vector<float>{30});
    series.append(more);
    CHECK(std::vector<std::int64_t>(series.steps().begin(), series.steps().end()) ==
          std::vector<std::int64_t>{1, 3});
    CHECK(std::isnan(series.column("loss")->values[1]));
    CHECK(std::isnan(series.column("other")->values[0]));
    CHECK(series.column("other")->values[1] == 30);
    CHECK(series.times()[1] == series.times()[0]); // never decreasing
}

TEST_CASE("what is told of many rows is what they hold, wherever they begin") {
    Series series;
    series.place_of("loss");
    Series more;
    more.place_of("loss");
    for (int step = 0; step < 1000; ++step) {
        float const value = step % 7 == 0 ? not_told : static_cast<float>((step * 37) % 101 - 50);
        (step < 500 ? series : more).append(step, step, std::vector<float>{value});
    }
    series.append(more);
    auto const& column = series.columns()[0];
    for (std::size_t first = 0; first < 1000; first += 43) {
        for (std::size_t last = first; last <= 1000; last += 61) {
            Summary expected;
            expected.add(std::span(column.values).subspan(first, last - first));
            auto const told = Series::summary(column, first, last);
            CHECK(told.min == expected.min);
            CHECK(told.max == expected.max);
            CHECK(told.sum == expected.sum);
            CHECK(told.count == expected.count);
        }
    }
    series.drop_after(300);
    append(series, 301, 1e6);
    CHECK(Series::summary(series.columns()[0], 0, 302).max == 1e6F);
    CHECK(series.columns()[0].summaries.size() <= 302 / Series::block_rows);
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
    for (auto const value : all.curves[0].max) {
        largest = std::max(largest, value);
    }
    CHECK(largest == 1e6F);
    CHECK(json_text(all).starts_with("{\"whole\":false,\"x\":["));
}

TEST_CASE("values that are not finite are null in JSON") {
    CHECK(json_list(std::vector<double>{1, NAN, HUGE_VAL}) == "[1,null,null]");
}
