#include "base/file.hpp"
#include "base/file_lock.hpp"
#include "base/lease.hpp"
#include "base/lock_holder.hpp"
#include "base/text.hpp"
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
    ::setenv("SLURM_RESTART_COUNT", "1", 1);
    Lease const second(scratch.path(), true, period_s); // requeued: nobody is waited for
    ::unsetenv("SLURM_RESTART_COUNT");
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

TEST_CASE("who holds the lock is told, and not whose claim is still there") {
    test::ScratchDir const scratch;
    auto const told = [&] {
        auto const error = test::error_of([&] { Lease(scratch.path(), true, period_s); });
        CHECK(error.code() == ExitCode::cannot_create);
        return error.text().why;
    };
    auto const holds = "holds the lock " + (scratch / "lock").string();
    other_attempt(scratch.path(), "18"); // which is not renewed
    CHECK(told().starts_with("another process " + holds));
    FileLock const lock(scratch / "lock");
    auto const by_kernel = lock_holder(scratch / "lock").process > 0; // which may hide it
    auto const whose = (by_kernel ? concat("process ", ::getpid(), " (") : "another process ");
    CHECK(told().starts_with(whose));
    CHECK(told().find(holds) != std::string::npos);
    std::filesystem::remove(scratch / Lease::file_name);
    CHECK(told().starts_with(whose)); // before there is a claim
    if (by_kernel) {
        Lease const own(scratch.path(), false, period_s);
        CHECK(told().starts_with("another live job is using it"));
    }
}

TEST_CASE("of two starts within one attempt of a job the second is refused") {
    struct Start {
        char const* job; ///< the variable
        char const* restarts;
        char const* launch;
        bool newer;
    };
    for (auto const& start :
         {Start{"SLURM_JOB_ID", "2", "", false}, Start{"SLURM_JOB_ID", "2", "a", true},
          Start{"SLURM_JOB_ID", "2", "b", false}, Start{"SLURM_JOB_ID", "3", "b", true},
          Start{"PBS_JOBID", "2", "", true}}) {
        test::ScratchDir const scratch;
        write_text_durably(scratch / Lease::file_name,
                           "number = 7\njob = 17\nattempt = 2\nhost = elsewhere\nprocess = 7\n"
                           "since = then\nlaunch = a\n");
        ::setenv(start.job, "17", 1);
        ::setenv("SLURM_RESTART_COUNT", start.restarts, 1);
        ::setenv("LOCKSTEP_LAUNCH", start.launch, 1);
        std::optional<Error> refused;
        try {
            Lease const lease(scratch.path(), true, period_s);
            CHECK(lease.number() == 8);
        } catch (Error const& error) {
            refused = error;
        }
        for (char const* name : {start.job, "SLURM_RESTART_COUNT", "LOCKSTEP_LAUNCH"}) {
            ::unsetenv(name);
        }
        INFO(start.job << " " << start.restarts << " " << start.launch);
        CHECK(refused.has_value() != start.newer);
        CHECK((!refused || refused->code() == ExitCode::cannot_create));
    }
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
