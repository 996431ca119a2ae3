#include "base/failed_allocation.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <cerrno>
#include <filesystem>
#include <new>
#include <system_error>
#include <utility>

#include "catch.hpp"

using namespace lockstep;

TEST_CASE("a message says what, why and what next, in this order") {
    Error const error(ExitCode::usage, {"data.batch = 0", "must be at least 1", "Set it to 32"});
    CHECK(std::string(error.what()) == "data.batch = 0: must be at least 1. Set it to 32");
    CHECK(error.code() == ExitCode::usage);
}

TEST_CASE("a message is one line, whatever names in files hold") {
    Error const error(ExitCode::data, {"a\nlockstep: root cause: b\rc", "\033[2J", "Copy it"});
    CHECK(std::string(error.what()) == "a\\x0alockstep: root cause: b\\x0dc: \\x1b[2J. Copy it");
}

TEST_CASE("whatever is thrown becomes an error with an exit code") {
    auto const code_of = [](auto const& thrower) {
        try {
            thrower();
        } catch (...) {
            return current_error().code();
        }
        return ExitCode::ok;
    };
    CHECK(code_of([] { throw std::bad_alloc(); }) == ExitCode::memory);
    CHECK(code_of([] { throw std::runtime_error("x"); }) == ExitCode::software);
    CHECK(code_of([] { throw 1; }) == ExitCode::software);
    CHECK(code_of([] { throw Error(ExitCode::data, {}); }) == ExitCode::data);
}

TEST_CASE("memory and threads that are not there are told with what was needed") {
    auto const text_of = [](auto const& thrower) {
        try {
            thrower();
        } catch (...) {
            auto const error = current_error();
            CHECK(error.code() == ExitCode::memory);
            CHECK(error.text().why.find(" of memory were left for this process") !=
                  std::string::npos);
            return std::string(error.what());
        }
        return std::string();
    };
    CHECK(text_of([] {
              throw FailedAllocation(std::size_t{3} << 30);
          }).starts_with("out of memory: 3.0 GiB were needed; "));
    CHECK(text_of([] {
              throw std::system_error(EAGAIN, std::generic_category());
          }).starts_with("a thread could not be started: "));
}

TEST_CASE("system errors map to what a job script should do") {
    CHECK(system_error("x", ENOSPC, "").code() == ExitCode::io);
    CHECK(system_error("x", ENOENT, "").code() == ExitCode::no_input);
    CHECK(system_error("x", EACCES, "").code() == ExitCode::cannot_create);
    CHECK(system_error("x", EROFS, "").code() == ExitCode::cannot_create);
    CHECK(system_error("x", ENOMEM, "").code() == ExitCode::memory);
}

TEST_CASE("what was only looked at is an input, what was to be made is not") {
    auto const told = [](char const* doing, int number) {
        try {
            throw std::filesystem::filesystem_error(
                doing, "/a", std::error_code(number, std::generic_category()));
        } catch (...) {
            return std::pair(current_error().code(), std::string(current_error().what()));
        }
    };
    CHECK(told("status", EACCES) ==
          std::pair(ExitCode::no_input, std::string("cannot open /a: Permission denied. Check the "
                                                    "path and its permissions")));
    CHECK(told("cannot get file size", EACCES).first == ExitCode::no_input);
    CHECK(told("status", EIO).first == ExitCode::io);
    CHECK(told("cannot create directory", EACCES).first == ExitCode::cannot_create);
    CHECK(told("cannot create directory", EACCES)
              .second.starts_with("cannot create directory /a: Permission denied. "));
    CHECK(told("symlink_status", EACCES).first == ExitCode::cannot_create);
}
