#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// The job of a batch system in which this process runs.
struct BatchJob {
    std::string scheduler;     ///< "slurm" or "pbs"; empty: none
    std::string id;            ///< "1234", "17.server"
    std::int64_t restarts = 0; ///< earlier attempts of the same job
    std::optional<double>
        seconds_left; ///< until the scheduler ends it; nothing: not known, or no limit
    std::vector<std::string> warnings{}; ///< unreadable variables about the job's end
};

/// What the environment says. If it does not say when the job ends, the batch system is asked by
/// one `squeue` or `qstat`, for at most `limit_s` seconds; so call it on one rank for all.
BatchJob batch_job(double limit_s = 60);

/// Seconds since the job began, as the job script has noted it in LOCKSTEP_JOB_STARTED (seconds
/// since 1970); 0 if it has not, or if the time is impossible.
double job_age();

/// Seconds until the job ends: after `walltime` seconds since it began, if the user has set a
/// walltime (else 0), or when the scheduler ends it, whichever is earlier.
std::optional<double> seconds_left(double walltime, BatchJob const& job);

/// "job ends at 2026-01-31 12:00:00 UTC, in 1 h 03 min".
std::string job_end_text(double seconds_left);

/// "3-02:10:05", "02:10:05", "10:05" or "45" in seconds; nothing for words such as UNLIMITED.
std::optional<double> seconds_of(std::string_view clock);

} // namespace lockstep
