#include "base/file.hpp"
#include "lockstep/base/error.hpp"

#include <array>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "catch.hpp"
#include "error_of.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;

TEST_CASE("what is written at a position is read from it") {
    test::ScratchDir const scratch;
    auto const file = File::create(scratch / "f");
    std::array const bytes{std::byte{1}, std::byte{2}, std::byte{3}};
    file.write_at(5, bytes);
    CHECK(file.size() == 8);
    std::array<std::byte, 3> back{};
    file.read_at(5, back);
    CHECK(back == bytes);
    CHECK_THROWS_AS(file.read_at(6, back), Error);
}

TEST_CASE("a new file takes the place of a link, and not that of the file it leads to") {
    test::ScratchDir const scratch;
    write_text_durably(scratch / "of another", "text");
    std::filesystem::create_symlink(scratch / "of another", scratch / "partial");
    File::create_new(scratch / "partial").append_text("new");
    CHECK_FALSE(std::filesystem::is_symlink(scratch / "partial"));
    CHECK(read_text(scratch / "partial") == "new");
    CHECK(read_text(scratch / "of another") == "text");
    CHECK(File::create_new(scratch / "partial").size() == 0);
}

TEST_CASE("a durable text replaces the old one and leaves nothing else") {
    test::ScratchDir const scratch;
    write_text_durably(scratch / "t", "one");
    write_text_durably(scratch / "t", "two");
    CHECK(read_text(scratch / "t") == "two");
    CHECK(std::distance(std::filesystem::directory_iterator(scratch.path()), {}) == 1);
}

TEST_CASE("missing files and directories carry their exit codes") {
    test::ScratchDir const scratch;
    CHECK(test::code_of([&] { File::open_read(scratch / "none"); }) == ExitCode::no_input);
    CHECK(test::code_of([&] { File::create(scratch / "no/such/place"); }) ==
          ExitCode::cannot_create);
    write_text_durably(scratch / "file", "x");
    CHECK(test::code_of([&] { make_directories(scratch / "file/below"); }) ==
          ExitCode::cannot_create);
}

TEST_CASE("a pipe in a file's place is refused, not waited for") {
    test::ScratchDir const scratch;
    auto const pipe = scratch / "pipe";
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    for (auto const& path : {pipe, std::filesystem::path("/dev/zero"), scratch.path()}) {
        CHECK_THROWS_WITH(File::open_read(path), Catch::Contains("it is a"));
    }
    CHECK_THROWS_AS(File::append(pipe), Error); // nobody reads
    int const reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    REQUIRE(reader >= 0);
    CHECK_NOTHROW(File::append(pipe).append_text("a record"));
    ::close(reader);
    CHECK_NOTHROW(File::append("/dev/null"));
}
