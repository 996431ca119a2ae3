#include "base/file.hpp"
#include "base/output_error.hpp"
#include "base/own_directory.hpp"
#include "base/own_file.hpp"
#include "lockstep/base/error.hpp"

#include <cerrno>
#include <sys/stat.h>
#include <unistd.h>

#include "catch.hpp"
#include "error_of.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;

namespace {

constexpr uid_t other = 65534;
constexpr uid_t third = 65533;

/// Whether files can be given to other users here; else what needs them is told to be left out.
bool can_give() {
    if (::geteuid() != 0) {
        WARN("SKIPPED: only root can give files to other users");
    }
    return ::geteuid() == 0;
}

void give(std::filesystem::path const& path, uid_t owner) {
    CHECK(::lchown(path.c_str(), owner, static_cast<gid_t>(-1)) == 0);
}

} // namespace

TEST_CASE("a file is relied on where nobody else can have written it") {
    test::ScratchDir const scratch;
    auto const file = scratch / "file";
    CHECK(distrust(file).empty()); // there is none
    for (auto const& [mode, good] : {std::pair{0600U, true}, std::pair{0644U, true},
                                     std::pair{0664U, false}, std::pair{0602U, false}}) {
        write_text_durably(file, "x");
        std::filesystem::permissions(file, std::filesystem::perms(mode));
        INFO(mode);
        CHECK(distrust(file).empty() == good);
    }
    std::filesystem::create_symlink(file, scratch / "link");
    CHECK(distrust(scratch / "link") == "it is not a regular file");
    if (can_give()) {
        write_text_durably(file, "x");
        give(file, other);
        CHECK(distrust(file) == "it belongs to another user (uid 65534)");
    }
}

TEST_CASE("in a directory that a user has named its owner is no third person") {
    test::ScratchDir const scratch;
    auto const file = scratch / "file";
    auto const link = scratch / "link";
    write_text_durably(file, "x");
    std::filesystem::create_symlink(file, link);
    CHECK(third_person(file).empty());
    CHECK_NOTHROW(require_own_place(link));
    if (!can_give()) {
        return;
    }
    give(link, other);
    give(file, other);
    CHECK_FALSE(third_person(file).empty());
    auto const error = test::error_of([&] { require_own_place(link); });
    CHECK(error.code() == ExitCode::cannot_create);
    CHECK(test::says(error, "link is a link, and it belongs to another user"));
    CHECK_NOTHROW(require_own_place(file)); // neither a link nor a directory
    CHECK(test::code_of([&] { require_own_choice(file); }) == ExitCode::no_input);
    std::filesystem::create_directory(scratch / "directory");
    CHECK_NOTHROW(require_own_place(scratch / "directory"));
    give(scratch / "directory", other);
    CHECK(test::code_of([&] { require_own_place(scratch / "directory"); }) ==
          ExitCode::cannot_create);
    CHECK(test::code_of([&] { require_own_choice(scratch / "none", scratch / "directory"); }) ==
          ExitCode::no_input);
    give(scratch.path(), third);
    CHECK_FALSE(third_person(file).empty());
    give(scratch.path(), other);
    CHECK(third_person(file).empty());
    CHECK_NOTHROW(require_own_place(link));
}

TEST_CASE("a directory of the program's own name is made where no third person is in its place") {
    test::ScratchDir const scratch;
    auto const place = scratch / "one/two";
    make_own_directory(place);
    make_own_directory(place);
    CHECK(has_own_place(place));
    CHECK_FALSE(has_own_place(scratch / "none"));
    std::filesystem::create_directory_symlink(place, scratch / "link");
    CHECK_NOTHROW(make_own_directory(scratch / "link"));
    auto const code = [](std::filesystem::path const& path) {
        return test::code_of([&] { make_own_directory(path); });
    };
    std::filesystem::create_directory_symlink(scratch / "gone", scratch / "nowhere");
    CHECK(code(scratch / "nowhere") == ExitCode::cannot_create);
    REQUIRE(::mkfifo((scratch / "pipe").c_str(), 0600) == 0);
    CHECK(code(scratch / "pipe") == ExitCode::cannot_create);
    auto const error = test::error_of([&] { require_own_place(scratch / "pipe"); });
    CHECK(test::says(error, "pipe is a pipe"));
    if (can_give()) {
        for (char const* const name : {"link", "one"}) {
            give(scratch / name, other);
            CHECK(code(scratch / name) == ExitCode::cannot_create);
        }
    }
}

TEST_CASE("a file that the kernel keeps for another user is not told as a matter of permissions") {
    test::ScratchDir const scratch;
    auto const file = scratch / "file";
    write_text_durably(file, "x");
    auto const told = [&](int error_number) { return output_error("what", file, error_number); };
    CHECK(test::says(told(EACCES), "Permission denied"));
    if (can_give()) {
        give(file, other);
        CHECK(test::says(told(EACCES), "it belongs to another user (uid 65534)"));
        CHECK(told(ENOSPC).code() == ExitCode::io);
        std::filesystem::remove(file);
        std::filesystem::create_symlink("anywhere", file);
        give(file, other);
        CHECK(test::says(told(EACCES), "it is a link, and it belongs to another user"));
    }
}

TEST_CASE("a private directory is one that others neither see into nor make files in") {
    test::ScratchDir const scratch;
    auto const place = scratch / "one/two";
    auto const mode = [&] { return std::filesystem::status(place).permissions(); };
    make_private_directory(place);
    CHECK(std::filesystem::is_directory(place));
    CHECK(mode() == std::filesystem::perms(0700));
    std::filesystem::permissions(place, std::filesystem::perms(0777));
    make_private_directory(place);
    CHECK(mode() == std::filesystem::perms(0700));
    std::filesystem::create_directory_symlink(place, scratch / "link");
    write_text_durably(scratch / "file", "x");
    for (char const* name : {"link", "file"}) {
        CHECK(test::code_of([&] { make_private_directory(scratch / name); }) ==
              ExitCode::cannot_create);
    }
    if (can_give()) {
        give(place, other);
        auto const error = test::error_of([&] { make_private_directory(place); });
        CHECK(error.code() == ExitCode::cannot_create);
        CHECK(test::says(error, "it belongs to another user (uid 65534)"));
    }
}
