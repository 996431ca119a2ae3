#include "base/lease.hpp"

#include "base/awake_clock.hpp"
#include "base/clock.hpp"
#include "base/environment.hpp"
#include "base/file.hpp"
#include "base/host_facts.hpp"
#include "base/lock_holder.hpp"
#include "base/process.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <fcntl.h>
#include <map>
#include <mutex>
#include <sys/stat.h>
#include <unistd.h>

namespace lockstep {

namespace {

/// A file system's clock may differ from ours, by this much at most.
constexpr std::int64_t long_ago_s = 600;

struct Claim {
    std::int64_t number = 0;
    std::string job;
    std::int64_t attempt = 0; ///< of the job
    std::string host;
    std::int64_t process = 0;
    std::uint64_t process_started = 0; ///< ids are used again
    std::string since;
    std::string launch; ///< the `lockstep launch` that has started it
};

std::uint64_t own_start() {
    auto const own = process_state(::getpid());
    return own ? own->started : 0;
}

std::string text_of(Claim const& claim) {
    return concat("number = ", claim.number, "\njob = ", claim.job, "\nattempt = ", claim.attempt,
                  "\nhost = ", claim.host, "\nprocess = ", claim.process,
                  "\nstarted = ", claim.process_started, "\nsince = ", claim.since,
                  "\nlaunch = ", claim.launch, "\n");
}

/// All zero where there is no such file, or none that holds a claim.
Claim read_claim(std::filesystem::path const& file) {
    std::map<std::string, std::string> values;
    auto const number = [&](char const* name) {
        return number_of<std::int64_t>(values[name]).value_or(0);
    };
    if (std::filesystem::is_regular_file(std::filesystem::symlink_status(file))) {
        for (auto const& line : split(read_text(file), '\n')) {
            if (auto const at = line.find(" = "); at != std::string::npos) {
                values[line.substr(0, at)] = line.substr(at + 3);
            }
        }
    }
    return {number("number"),  values["job"],
            number("attempt"), values["host"],
            number("process"), number_of<std::uint64_t>(values["started"]).value_or(0),
            values["since"],   values["launch"]};
}

std::string described(Claim const& claim) {
    return concat(claim.job.empty() ? std::string("a process") : "job " + claim.job, " on ",
                  claim.host, ", process ", claim.process, ", since ", claim.since);
}

Error superseded(std::filesystem::path const& directory, Claim const& newer) {
    return {
        ExitCode::superseded,
        {concat("run directory ", directory.string(), " no longer belongs to this attempt"),
         concat("a newer attempt of this run has taken it over (", described(newer), ")"),
         "Do not requeue this job, because the newer attempt resumes from the newest checkpoint"}};
}

/// Which attempt of its job this one is, where the scheduler counts them.
std::int64_t attempt_of_job() {
    return environment_number<std::int64_t>("SLURM_RESTART_COUNT").value_or(0);
}

/// Whether an attempt of a job comes after the one that has made the claim: what the claim's
/// process does then no longer counts. A launch starts again what it has ended; two starts in one
/// attempt of a Slurm job are two runs.
bool comes_after(Claim const& before, std::string const& launch) {
    return before.attempt < attempt_of_job() || environment_text("SLURM_JOB_ID").empty() ||
           (!launch.empty() && launch == before.launch);
}

timespec renewed(std::filesystem::path const& file) {
    struct stat info {};
    return ::stat(file.c_str(), &info) == 0 ? info.st_mtim : timespec{};
}

/// Whether the process is known to have ended.
bool has_ended(Claim const& claim) {
    if (claim.host != own_host()) {
        return false;
    }
    auto const process = process_state(static_cast<int>(claim.process));
    return !process || process->started != claim.process_started;
}

/// Whether the claim's process is alive, as far as can be known: whether somebody still renews the
/// file.
bool is_alive(Claim const& claim, std::filesystem::path const& file, double period_s,
              std::function<void()> const& waiting) {
    bool const own = claim.host == own_host() && claim.process == ::getpid(); // an earlier run
    auto const before = renewed(file);
    if (claim.number == 0 || own || before.tv_sec + long_ago_s < ::time(nullptr)) {
        return false;
    }
    AwakeClock clock;
    while (!has_ended(claim) && clock.seconds() < 3 * period_s) {
        std::this_thread::sleep_for(
            std::chrono::duration<double>(std::min(period_s / 10, AwakeClock::look_every_s)));
        waiting();
        auto const now = renewed(file);
        if (now.tv_sec != before.tv_sec || now.tv_nsec != before.tv_nsec) {
            return !has_ended(claim);
        }
    }
    return false;
}

Error in_use(std::filesystem::path const& directory, std::string const& by, char const* whom) {
    return {
        ExitCode::cannot_create,
        {concat("cannot use run directory ", directory.string()), by,
         concat("Wait for that ", whom, ", end it, or set run.directory to another directory")}};
}

/// Throws where another one is using the directory. A process that has the lock need not be the one
/// whose claim is there, which may have ended long ago.
void require_free(std::filesystem::path const& file, Claim const& claim, bool same_job, bool held,
                  std::function<bool()> const& is_alive) {
    auto const holder = held ? lock_holder(file.parent_path() / "lock") : LockHolder{};
    bool const by_claimant = holder.process > 0
                                 ? claim.host == own_host() && claim.process == holder.process
                                 : is_alive();
    if (by_claimant) {
        throw in_use(file.parent_path(),
                     concat(same_job ? "another start within this job" : "another live job",
                            " is using it (", described(claim), ")"),
                     "job");
    }
    if (held) {
        throw in_use(file.parent_path(), holder.text, "process");
    }
}

void renew(int descriptor, std::stop_token const& stop, double period_s) {
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock lock(mutex);
    std::chrono::duration<double> const period(period_s);
    while (!wake.wait_for(lock, stop, period, [&] { return stop.stop_requested(); })) {
        ::futimens(descriptor, nullptr); // one that fails is followed by another
    }
}

} // namespace

std::string own_job_id() {
    for (char const* name :
         {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID", "LOCKSTEP_LAUNCH"}) {
        if (auto value = environment_text(name); !value.empty()) {
            return value;
        }
    }
    return "";
}

std::optional<Error> taken_over(std::filesystem::path const& directory, std::int64_t number) {
    auto const now = read_claim(directory / Lease::file_name);
    return now.number > number ? std::optional(superseded(directory, now))
                               : claimed_by_others(directory);
}

std::optional<Error> claimed_by_others(std::filesystem::path const& directory) {
    auto const now = read_claim(directory / Lease::file_name);
    auto const launch = environment_text("LOCKSTEP_LAUNCH");
    bool const others = now.number > 0 && !launch.empty() && now.launch != launch;
    return others ? std::optional(superseded(directory, now)) : std::nullopt;
}

std::int64_t claimed_number(std::filesystem::path const& directory) {
    return read_claim(directory / Lease::file_name).number;
}

bool is_claimed_here(std::filesystem::path const& directory) noexcept {
    try {
        auto const now = read_claim(directory / Lease::file_name);
        return now.number > 0 && now.host == own_host() && now.process == ::getpid();
    } catch (...) {
        return false;
    }
}

Lease::Lease(std::filesystem::path const& directory, bool held, double period_s,
             std::function<void()> const& waiting)
    : file_(directory / file_name) {
    if (auto const kind = std::filesystem::symlink_status(file_);
        std::filesystem::exists(kind) && !std::filesystem::is_regular_file(kind)) {
        throw Error(
            ExitCode::cannot_create,
            {concat("cannot use run directory ", directory.string()),
             concat("its ", file_name, " is not a regular file"),
             concat("Remove ", file_.string(), ", because each start creates this file again")});
    }
    auto const before = read_claim(file_);
    auto const job = own_job_id();
    bool const same_job = !job.empty() && before.job == job;
    if (same_job && before.attempt > attempt_of_job()) {
        throw superseded(directory, before);
    }
    auto const launch = environment_text("LOCKSTEP_LAUNCH");
    bool const newer = same_job && comes_after(before, launch);
    if (!newer) {
        require_free(file_, before, same_job, held,
                     [&] { return is_alive(before, file_, period_s, waiting); });
    }
    number_ = before.number + 1;
    requeued_ = same_job && before.attempt < attempt_of_job();
    follows_ = same_job;
    job_ = job;
    write_text_durably(file_, text_of({number_, job, attempt_of_job(), own_host(), ::getpid(),
                                       own_start(), utc_now(), launch}));
    own_ = Descriptor(::open(file_.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));
    if (!own_.is_open()) { // without renewals another job would take this one for dead
        auto const why =
            system_error(file_.string(), errno, "Check the permissions of that file").text();
        throw Error(ExitCode::cannot_create,
                    {concat("cannot renew the lease on run directory ", directory.string()),
                     concat(why.why, " (", why.what, ")"), why.next});
    }
    renewal_ = std::jthread([descriptor = own_.get(), period_s](std::stop_token const& stop) {
        renew(descriptor, stop, period_s);
    });
}

Lease::~Lease() {
    renewal_.request_stop();
    renewal_.join();
    std::array<timespec, 2> const never{}; // 1970: nobody need wait for a renewal
    ::futimens(own_.get(), never.data());
}

void Lease::require() const {
    auto const now = read_claim(file_);
    if (now.number == 0) {
        bool const there = std::filesystem::exists(file_);
        throw Error(ExitCode::io,
                    {concat("the run in ", file_.parent_path().string(), " cannot continue"),
                     there ? concat("its file ", file_name,
                                    " is damaged, because another program has overwritten, "
                                    "truncated or replaced the file")
                           : concat("its file ", file_name, " was moved or removed during the run"),
                     concat(there ? "Remove that file" : "Put the directory back if it is gone too",
                            ", and start again. The run resumes from its newest checkpoint")});
    }
    if (now.number != number_ || now.host != own_host() || now.process != ::getpid()) {
        throw superseded(file_.parent_path(), now);
    }
}

} // namespace lockstep
