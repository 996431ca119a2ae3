#include "base/file.hpp"
#include "base/file_lock.hpp"
#include "base/lock_holder.hpp"
#include "base/text.hpp"
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
    auto const file = File::create_new(scratch / "f");
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

TEST_CASE("what is written is not written through a link of another user") {
    test::ScratchDir const scratch;
    write_text_durably(scratch / "mine", "text");
    std::filesystem::create_directory_symlink(scratch.path(), scratch / "place");
    using Open = void (*)(std::filesystem::path const&);
    for (char const* name : {"link", "place/link"}) {
        for (Open const open : {Open([](auto const& path) { File::open_write(path); }),
                                Open([](auto const& path) { File::append(path).append_text(""); }),
                                Open([](auto const& path) { File::create(path); })}) {
            for (char const* target : {"mine", "not yet"}) {
                std::filesystem::remove(scratch / "link");
                std::filesystem::create_symlink(target, scratch / "link");
                if (::geteuid() != 0) {
                    WARN("SKIPPED: only root can give links to other users");
                    return;
                }
                CHECK(::lchown((scratch / "link").c_str(), 65534, static_cast<gid_t>(-1)) == 0);
                auto const error = test::error_of([&] { open(scratch / name); });
                CHECK(error.code() == ExitCode::cannot_create);
                CHECK(test::says(error, "it is a link that another user made"));
            }
        }
    }
    CHECK(read_text(scratch / "mine") == "text");
    CHECK_FALSE(std::filesystem::exists(scratch / "not yet"));
    CHECK_THROWS_WITH(FileLock(scratch / "link"), Catch::Contains("it is a link"));
    std::filesystem::remove(scratch / "link");
    std::filesystem::create_symlink("mine", scratch / "link");
    File::append(scratch / "link").append_text(" and more"); // of this user
    CHECK(read_text(scratch / "mine") == "text and more");
    CHECK_NOTHROW(File::append(scratch / "place/log").append_text("x")); // a directory may be one
    CHECK_NOTHROW(require_writable(scratch / "place"));
    write_text_durably(scratch / "link", "new"); // takes its place
    CHECK(read_text(scratch / "mine") == "text and more");
}

TEST_CASE("a lock is for those who may write to it") {
    test::ScratchDir const scratch;
    auto const mode = [&] {
        struct stat info {};
        CHECK(::stat((scratch / "lock").c_str(), &info) == 0);
        return info.st_mode & 0777;
    };
    auto const before = ::umask(0);
    for (mode_t const mask : {0022, 0002, 0077}) {
        ::umask(mask);
        std::filesystem::remove(scratch / "lock");
        FileLock const lock(scratch / "lock");
        CHECK(mode() == (0622U & ~mask));
        FileLock const other(scratch / "lock");
        auto const told = concat("process ", ::getpid(), " (");
        CHECK(other.is_held_elsewhere());
        auto const holder = lock_holder(scratch / "lock");
        CHECK((holder.process == 0 || holder.text.starts_with(told)));
    }
    std::filesystem::permissions(scratch / "lock", std::filesystem::perms(0644));
    FileLock const earlier(scratch / "lock");
    CHECK(mode() == 0600);
    ::umask(before);
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
    CHECK(test::code_of([&] { File::create_new(scratch / "no/such/place"); }) ==
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
    CHECK_THROWS_WITH(File::append(pipe), Catch::Contains("it is a pipe")); // nobody reads
    int const reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    REQUIRE(reader >= 0);
    CHECK_THROWS_WITH(File::append(pipe), Catch::Contains("it is a pipe"));
    std::filesystem::create_symlink(pipe, scratch / "link"); // as /dev/stdout
    CHECK_NOTHROW(File::append(scratch / "link").append_text("a record"));
    ::close(reader);
    CHECK_NOTHROW(File::append("/dev/null"));
}
