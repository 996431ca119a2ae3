#include "base/file.hpp"
#include "base/lease.hpp"
#include "lockstep/base/error.hpp"

#include <cstdlib>
#include <optional>
#include <sys/wait.h>
#include <unistd.h>

#include "catch.hpp"
#include "error_of.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;

namespace {

constexpr double period_s = 0.2;

/// The file of an attempt on another host, which may still be renewed.
void other_attempt(std::filesystem::path const& directory, std::string const& job) {
    write_text_durably(directory / Lease::file_name, "number = 7\njob = " + job +
                                                         "\nhost = elsewhere\nprocess = 1\n"
                                                         "since = then\n");
}

} // namespace

TEST_CASE("each start has the next number, and the one before is fenced off") {
    test::ScratchDir const scratch;
    Lease const first(scratch.path(), false, period_s);
    CHECK(first.number() == 1);
    CHECK_NOTHROW(first.require());
    ::setenv("SLURM_JOB_ID", "17", 1);
    other_attempt(scratch.path(), "17");
    Lease const second(scratch.path(), true, period_s); // requeued: nobody is waited for
    ::unsetenv("SLURM_JOB_ID");
    CHECK(second.number() == 8);
    CHECK_NOTHROW(second.require());
    auto const error = test::error_of([&] { first.require(); });
    CHECK(error.code() == ExitCode::superseded);
    CHECK(test::says(error, "job 17"));
}

TEST_CASE("an attempt of another job that is not renewed is taken over, a renewed one is 73") {
    test::ScratchDir const scratch;
    other_attempt(scratch.path(), "18");
    {
        std::jthread const renewed([&](std::stop_token const& stop) {
            while (!stop.stop_requested()) {
                std::filesystem::last_write_time(scratch / Lease::file_name,
                                                 std::filesystem::file_time_type::clock::now());
                std::this_thread::sleep_for(std::chrono::milliseconds(100));
            }
        });
        auto const error = test::error_of([&] { Lease(scratch.path(), false, period_s); });
        CHECK(error.code() == ExitCode::cannot_create);
        CHECK(test::says(error, "another live job"));
        CHECK(test::says(error, "elsewhere"));
    }
    CHECK(Lease(scratch.path(), false, period_s).number() == 8);
    auto const held = test::error_of([&] {
        other_attempt(scratch.path(), "18");
        Lease(scratch.path(), true, period_s);
    });
    CHECK(held.code() == ExitCode::cannot_create);
}

TEST_CASE("a killed process of this host is taken over without waiting") {
    test::ScratchDir const scratch;
    pid_t const child = ::fork();
    if (child == 0) {
        Lease const attempt(scratch.path(), false, period_s);
        ::_exit(0); // no destructor: as if killed
    }
    ::waitpid(child, nullptr, 0);
    CHECK(Lease(scratch.path(), false, 1000).number() == 2); // a wait would take most of an hour
}

TEST_CASE("an older attempt of a job does not take its directory back from the newer one") {
    test::ScratchDir const scratch;
    ::setenv("SLURM_JOB_ID", "17", 1);
    ::setenv("SLURM_RESTART_COUNT", "2", 1);
    Lease const newer(scratch.path(), false, period_s);
    ::unsetenv("SLURM_RESTART_COUNT"); // as in a job's first attempt
    auto const error = test::error_of([&] { Lease(scratch.path(), false, period_s); });
    ::unsetenv("SLURM_JOB_ID");
    CHECK(error.code() == ExitCode::superseded);
    CHECK_NOTHROW(newer.require());
}

TEST_CASE("of two starts at once the second says what it knows of the first") {
    test::ScratchDir const scratch;
    auto const error = test::error_of([&] { Lease(scratch.path(), true, period_s); });
    CHECK(error.code() == ExitCode::cannot_create);
    CHECK(test::says(error, "a process on this host, which has just started"));
}

TEST_CASE("a claim that is gone is told from one that is damaged or no file") {
    test::ScratchDir const scratch;
    auto const file = scratch / Lease::file_name;
    Lease const lease(scratch.path(), false, period_s);
    auto const told = [&] { return test::error_of([&] { lease.require(); }); };
    for (char const* text : {"", "number = ", "scribbled"}) {
        write_text_durably(file, text);
        CHECK(told().code() == ExitCode::io);
        CHECK(test::says(told(), "is damaged"));
        CHECK(test::says(told(), "Remove that file"));
        CHECK_FALSE(taken_over(scratch.path(), lease.number()));
    }
    std::filesystem::remove(file);
    CHECK(test::says(told(), "was moved or removed"));
    std::filesystem::create_directory(file);
    CHECK(test::says(told(), "Remove that file"));
    CHECK_FALSE(taken_over(scratch.path(), lease.number())); // so that it is on record
    auto const again = test::error_of([&] { Lease(scratch.path(), false, period_s); });
    CHECK(again.code() == ExitCode::cannot_create);
    CHECK(test::says(again, "Remove " + file.string()));
}
