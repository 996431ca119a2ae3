#include "base/some_of.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <limits>

#include "catch.hpp"

using namespace lockstep;

TEST_CASE("sizes, counts and durations read like a person writes them") {
    CHECK(bytes_text(0) == "0 B");
    CHECK(bytes_text(1536) == "1.5 KiB");
    CHECK(bytes_text(std::uint64_t{3} << 30) == "3.0 GiB");
    CHECK(count_text(60000) == "60,000");
    CHECK(count_text(999) == "999");
    CHECK(count_text(-1234567) == "-1,234,567");
    CHECK(count_text(60000, "sample") == "60,000 samples");
    CHECK(count_text(1, "sample") == "1 sample");
    CHECK(amount_of(0, "rank") == "0 ranks");
    CHECK(amount_of(std::size_t{1}, "rank") == "1 rank");
    CHECK(duration_text(4.24) == "4.2 s");
    CHECK(duration_text(0.0352) == "35 ms");
    CHECK(duration_text(0.0004) == "0.4 ms");
    CHECK(duration_text(0) == "0.0 s");
    CHECK(duration_text(63) == "1 min 03 s");
    CHECK(duration_text(7380) == "2 h 03 min");
}

TEST_CASE("a misspelt name leads to the one that was meant, and a strange one to none") {
    std::vector<std::string> const keys{"train.epochs", "optimizer.learning-rate", "data.batch"};
    CHECK(nearest_name("optimizer.learning-rat", keys) == "optimizer.learning-rate");
    CHECK(nearest_name("data.bacth", keys) == "data.batch");
    // One letter off from both: the one of the same length.
    std::vector<std::string> const both{"run.device", "run.devices"};
    CHECK(nearest_name("run.devicez", both) == "run.devices");
    CHECK(nearest_name("run.devic", both) == "run.device");
    CHECK(nearest_name("zzz", keys).empty());
    // The section is not a part of what was meant.
    CHECK(nearest_name("optimizer.lr", {"optimizer.ema", "optimizer.name"}).empty());
    CHECK(nearest_name("task.gravity", {"task.metric"}).empty());
    CHECK(edit_distance("kitten", "sitting") == 3);
}

TEST_CASE("numbers are written as printf writes them") {
    CHECK(zero_padded(42, 4) == "0042");
    CHECK(zero_padded(-5, 4) == "-005");
    CHECK(zero_padded(123456, 4) == "123456");
    CHECK(significant(1234.5, 3) == "1.23e+03");
    CHECK(significant(0.5, 9) == "0.5");
    CHECK(significant(0.1, 17) == "0.10000000000000001");
    CHECK(significant(std::numeric_limits<double>::infinity(), 4) == "inf");
}

TEST_CASE("names are listed as in a sentence") {
    CHECK(list_text({}).empty());
    CHECK(list_text({"a"}) == "a");
    CHECK(list_text({"a", "b"}) == "a and b");
    CHECK(list_text({"a", "b", "c"}, "or") == "a, b or c");
}

TEST_CASE("a name that is taken gets the first free number") {
    std::vector<std::string> const taken{"a", "b", "b_2", "c_2"};
    auto const untaken = [&](char const* name) {
        return untaken_name(
            name, [&](std::string const& each) { return std::ranges::count(taken, each) > 0; });
    };
    CHECK(untaken("a") == "a_2");
    CHECK(untaken("b") == "b_3");
    CHECK(untaken("c") == "c");
}

TEST_CASE("ranks are named by their numbers, eight of them at most") {
    CHECK(ranks_text(std::vector{3}) == "rank 3");
    CHECK(ranks_text(std::vector{0, 2}) == "ranks 0, 2");
    CHECK(ranks_text(std::vector<std::size_t>{0, 1, 2, 3, 4, 5, 6, 7}) ==
          "ranks 0, 1, 2, 3, 4, 5, 6, 7");
    CHECK(ranks_text(std::vector{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}) ==
          "ranks 0, 1, 2, 3, 4, 5, 6, 7 and 2 more");
}

TEST_CASE("lists are split at the separator and trimmed") {
    CHECK(split(" a, b ,c", ',') == std::vector<std::string>{"a", "b", "c"});
    CHECK(split("  ", ',').empty());
    CHECK(split("a,,b", ',').size() == 3);
    for (auto const& parts : std::vector<std::vector<std::string>>{{},
                                                                   {"a"},
                                                                   {"a", "b"},
                                                                   {"", "a"},
                                                                   {"", "", "a"},
                                                                   {"a", ""},
                                                                   {"a", "", "b"},
                                                                   {"", ""}}) {
        CAPTURE(parts);
        CHECK(split(joined(parts, ","), ',') == parts);
    }
}

TEST_CASE("of many names, a line has some") {
    CHECK(some_of({}).empty());
    CHECK(some_of({"a", "b"}, 2) == "a, b");
    CHECK(some_of({"a", "b", "c"}, 2) == "a, b and 1 more");
    CHECK(some_of(std::vector<std::string>(2000, "x"), 1) == "x and 1,999 more");
}
