#include "base/line_reader.hpp"

#include <unistd.h>

#include "catch.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;

TEST_CASE("lines are given with their places, the last also without its end") {
    test::ScratchDir const scratch;
    write_text_durably(scratch / "lines", "one\n\nthree\nhalf");
    LineReader lines(scratch / "lines");
    std::string line;
    REQUIRE(lines.next(line));
    CHECK(line == "one");
    CHECK(lines.place() == 4);
    REQUIRE(lines.next(line));
    CHECK(line.empty());
    REQUIRE(lines.next(line));
    CHECK(line == "three");
    CHECK(lines.has_end());
    REQUIRE(lines.next(line));
    CHECK(line == "half");
    CHECK_FALSE(lines.has_end());
    CHECK_FALSE(lines.next(line));
    LineReader rest(scratch / "lines", 5);
    REQUIRE(rest.next(line));
    CHECK(line == "three");
}

TEST_CASE("of a line of any length no more than a part is held") {
    test::ScratchDir const scratch;
    write_text_durably(scratch / "lines", "");
    constexpr auto bytes = 3 * LineReader::longest_line;
    REQUIRE(::truncate((scratch / "lines").c_str(), bytes) == 0);
    File::append(scratch / "lines").append_text("\nbehind\n");
    LineReader lines(scratch / "lines");
    std::string line;
    REQUIRE(lines.next(line));
    CHECK(line.size() == LineReader::longest_line);
    CHECK(lines.place() == bytes + 1);
    REQUIRE(lines.next(line));
    CHECK(line == "behind");
}

TEST_CASE("what is no file has no lines") {
    test::ScratchDir const scratch;
    std::string line;
    CHECK_FALSE(LineReader(scratch / "missing").next(line));
    CHECK_FALSE(LineReader(scratch.path()).next(line));
}
