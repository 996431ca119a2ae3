#include "base/batch_job.hpp"
#include "base/child.hpp"
#include "base/clock.hpp"
#include "base/file.hpp"
#include "base/process.hpp"
#include "base/text.hpp"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <map>
#include <sys/time.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "catch.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;

namespace {

using Variables = std::map<std::string, std::string>;

/// The variables of a batch job, and stand-ins of its commands first on PATH, for one test.
class Site {
  public:
    explicit Site(Variables const& variables) {
        for (char const* name : {"SLURM_JOB_ID", "SLURM_JOB_END_TIME", "SLURM_RESTART_COUNT",
                                 "PBS_JOBID", "PBS_WALLTIME", "LOCKSTEP_JOB_STARTED"}) {
            ::unsetenv(name);
        }
        for (auto const& [name, value] : variables) {
            ::setenv(name.c_str(), value.c_str(), 1);
        }
        ::setenv("PATH", concat(scratch_.path().string(), ":", path_).c_str(), 1);
    }
    ~Site() { ::setenv("PATH", path_.c_str(), 1); }

    void command(std::string const& name, std::string const& script) const {
        auto const file = scratch_.path() / name;
        write_text_durably(file, "#!/bin/sh\n" + script);
        std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    }

  private:
    test::ScratchDir scratch_;
    std::string path_ = std::getenv("PATH");
};

std::string seconds_from_now(double seconds) {
    return std::to_string(static_cast<std::int64_t>(std::time(nullptr) + seconds));
}

} // namespace

TEST_CASE("clock times as batch systems print them") {
    CHECK(seconds_of("45") == 45);
    CHECK(seconds_of("10:05") == 605);
    CHECK(seconds_of("02:10:05") == 7805);
    CHECK(seconds_of("3-02:10:05") == 3 * 86400 + 7805);
    for (char const* none : {"", "UNLIMITED", "INVALID", "1:x", "a-10:00", "1:2:3:4"}) {
        CAPTURE(none);
        CHECK_FALSE(seconds_of(none));
    }
}

TEST_CASE("outside a batch job nothing is known") {
    Site const site(Variables{});
    auto const job = batch_job();
    CHECK(job.scheduler.empty());
    CHECK_FALSE(job.seconds_left);
}

TEST_CASE("Slurm's end time from the environment") {
    Site const site(Variables{{"SLURM_JOB_ID", "7"},
                              {"SLURM_JOB_END_TIME", seconds_from_now(100)},
                              {"SLURM_RESTART_COUNT", "2"}});
    site.command("squeue", "echo 1:00:00:00");
    auto const job = batch_job();
    CHECK(job.scheduler == "slurm");
    CHECK(job.id == "7");
    CHECK(job.restarts == 2);
    CHECK(job.seconds_left.value() == Approx(100).margin(3));
}

TEST_CASE("an older Slurm is asked by squeue") {
    Site const site(Variables{{"SLURM_JOB_ID", "7"}});
    site.command("squeue", "test \"$*\" = '-h -j 7 -o %L' && echo 1-00:10:05");
    auto const job = batch_job();
    CHECK(job.restarts == 0);
    CHECK(job.seconds_left == 86400 + 605);
    site.command("squeue", "echo INVALID"); // it is over its limit
    CHECK(batch_job().seconds_left == 0);
    site.command("squeue", "echo UNLIMITED");
    CHECK_FALSE(batch_job().seconds_left);
}

TEST_CASE("a batch system that does not answer costs the limit and no more") {
    Site const site(Variables{{"SLURM_JOB_ID", "7"}});
    site.command("squeue", "exec sleep 100");
    Stopwatch const watch;
    CHECK_FALSE(batch_job(0.3).seconds_left);
    CHECK(watch.seconds() < 10);
    site.command("squeue", "echo 10:00; exit 1");
    CHECK_FALSE(batch_job().seconds_left);
}

TEST_CASE("PBS: the walltime less what is used, and the attempts of the job") {
    Site const site(Variables{{"PBS_JOBID", "17.server"}});
    site.command("qstat", "cat <<'L'\nJob Id: 17.server\n    resources_used.walltime = 00:10:00\n"
                          "    Resource_List.walltime = 01:00:00\n    run_count = 3\nL\n");
    auto job = batch_job();
    CHECK(job.scheduler == "pbs");
    CHECK(job.restarts == 2);
    CHECK(job.seconds_left == 3000);

    // What qstat has counted lags behind: the start of the job is better.
    site.command("qstat", "echo '    Resource_List.walltime = 01:00:00'\n"
                          "echo '    resources_used.walltime = 00:00:00'\n"
                          "echo \"    stime = $(LC_ALL=C date -d '20 minutes ago' "
                          "'+%a %b %d %H:%M:%S %Y')\"\n");
    CHECK(batch_job().seconds_left.value() == Approx(2400).margin(5));
}

TEST_CASE("PBS without qstat: its variable, and the start that the script noted") {
    Site const site(Variables{{"PBS_JOBID", "17.server"},
                              {"PBS_WALLTIME", "3600"},
                              {"LOCKSTEP_JOB_STARTED", seconds_from_now(-600)}});
    site.command("qstat", "exit 153");
    CHECK(batch_job().seconds_left.value() == Approx(3000).margin(3));
}

TEST_CASE("PBS_WALLTIME as a clock") {
    Site const site(Variables{{"PBS_JOBID", "17.server"}, {"PBS_WALLTIME", "01:00:00"}});
    site.command("qstat", "exit 153");
    auto const job = batch_job();
    CHECK(job.seconds_left == 3600);
    CHECK(job.warnings.empty());
}

TEST_CASE("a time that cannot be read is left out, and said") {
    auto const warned = [](Variables const& variables, std::string const& name) {
        Site const site(variables);
        site.command("qstat", "exit 153");
        site.command("squeue", "echo 10:00");
        auto const job = batch_job();
        REQUIRE(job.warnings.size() == 1);
        CAPTURE(job.warnings[0]);
        CHECK(job.warnings[0].starts_with("warning: " + name + " = "));
        return job.seconds_left;
    };
    for (char const* none : {"Unknown", "1e", "-5", "123456789012345678901234567890", "nan"}) {
        CHECK(warned({{"SLURM_JOB_ID", "7"}, {"SLURM_JOB_END_TIME", none}}, "SLURM_JOB_END_TIME") ==
              600); // squeue knows
    }
    for (char const* none : {"UNLIMITED", "1:2:3:4", "-60", "inf"}) {
        CHECK_FALSE(warned({{"PBS_JOBID", "7"}, {"PBS_WALLTIME", none}}, "PBS_WALLTIME"));
    }
    for (auto const& none : {std::string("noon"), seconds_from_now(3600)}) {
        CHECK_FALSE(warned({{"LOCKSTEP_JOB_STARTED", none}}, "LOCKSTEP_JOB_STARTED"));
        Site const site(Variables{{"LOCKSTEP_JOB_STARTED", none}});
        CHECK(job_age() == 0);
    }
}

TEST_CASE("when the job ends") {
    CHECK(job_end_text(3780).ends_with(" UTC, in 1 h 03 min"));
    CHECK(job_end_text(3780).starts_with("job ends at 20"));
}

TEST_CASE("a child ends with the process that waits for it, however that ends") {
    test::ScratchDir const scratch;
    auto const file = (scratch / "child").string();
    pid_t const asking = ::fork();
    if (asking == 0) {
        static_cast<void>(output_of({"sh", "-c", "echo $$ > " + file + "; exec sleep 1000"}, 1000));
        ::_exit(0);
    }
    pid_t child = 0;
    while (!(std::ifstream(file) >> child)) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    ::kill(asking, SIGKILL);
    ::waitpid(asking, nullptr, 0);
    Stopwatch const watch;
    auto const runs = [&] {
        auto const state = process_state(child);
        return state && state->state != 'Z'; // whoever inherits it may be slow to look
    };
    while (runs() && watch.seconds() < 10) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    CHECK_FALSE(runs());
    ::kill(child, SIGKILL);
}

TEST_CASE("a child has as long as it is given, and its exit code says how it ended") {
    CHECK(ChildProcess({"true"}).wait(5) == 0);
    CHECK(ChildProcess({"sh", "-c", "exit 3"}).wait(5) == 3);
    CHECK(ChildProcess({"sh", "-c", "kill -9 $$"}).wait(5) == 137);
    CHECK(ChildProcess({"no-such-program"}).wait(5) == 127);
    Stopwatch const watch;
    {
        ChildProcess child({"sleep", "1000"});
        CHECK_FALSE(child.wait(0.1));
        CHECK_FALSE(child.wait(0.1));
    }
    CHECK(watch.seconds() < 500);
}

TEST_CASE("a signal does not lift the limit of a wait for a child, nor do many") {
    struct sigaction ignored {};
    struct sigaction before {};
    ignored.sa_handler = [](int) {};
    ::sigaction(SIGALRM, &ignored, &before);
    for (int const again_us : {0, 2000}) {
        auto const alarm = [&] {
            itimerval const timer{{0, again_us}, {0, 50000}};
            ::setitimer(ITIMER_REAL, &timer, nullptr);
        };
        alarm();
        CHECK_FALSE(output_of({"sleep", "1000"}, 0.5)); // which says nothing
        alarm();
        CHECK_FALSE(output_of({"sh", "-c", "exec >&-; exec sleep 1000"}, 0.5)); // nor does it end
        alarm();
        CHECK_FALSE(ChildProcess({"sleep", "1000"}).wait(0.5));
        alarm();
        CHECK(output_of({"sh", "-c", "sleep 0.2; echo late"}, 100) == "late\n");
    }
    itimerval const never{};
    ::setitimer(ITIMER_REAL, &never, nullptr);
    ::sigaction(SIGALRM, &before, nullptr);
}

TEST_CASE("of the user's walltime and the scheduler's end the earlier one holds") {
    BatchJob job;
    CHECK_FALSE(seconds_left(0, job));
    CHECK(seconds_left(600, job) == 600);
    job.seconds_left = 100;
    CHECK(seconds_left(0, job) == 100);
    CHECK(seconds_left(600, job) == 100);
    CHECK(seconds_left(60, job) == 60);
}

TEST_CASE("what a child writes, and none of a child that fails") {
    CHECK(output_of({"echo", "two", "words"}, 5) == "two words\n");
    CHECK_FALSE(output_of({"false"}, 5));
    CHECK_FALSE(output_of({"no-such-program"}, 5));
    CHECK(output_of({"head", "-c", "300000", "/dev/zero"}, 5).value().size() == 300000);
}
