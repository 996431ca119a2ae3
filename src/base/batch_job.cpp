#include "lockstep/base/batch_job.hpp"

#include "lockstep/base/child.hpp"
#include "lockstep/base/environment.hpp"
#include "lockstep/base/number.hpp"
#include "lockstep/base/text.hpp"

#include <chrono>
#include <ctime>

namespace lockstep {

namespace {

double seconds_since_1970() {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch())
        .count();
}

/// The value of "    name = value" in qstat's full listing.
std::string qstat_value(std::string const& listing, std::string const& name) {
    for (auto const& line : split(listing, '\n')) {
        if (line.starts_with(name + " = ")) {
            return line.substr(name.size() + 3);
        }
    }
    return "";
}

/// "Sat Nov 21 11:00:00 2026", local time, in seconds since 1970.
std::optional<double> date_of(std::string const& text) {
    std::tm parts{};
    parts.tm_isdst = -1;
    if (::strptime(text.c_str(), "%a %b %d %H:%M:%S %Y", &parts) == nullptr) {
        return std::nullopt;
    }
    return static_cast<double>(std::mktime(&parts));
}

void ask_slurm(BatchJob& job, double limit_s) {
    job.restarts = environment_number<long>("SLURM_RESTART_COUNT").value_or(0);
    // Since Slurm 23.11; an administrator may have moved the end since, seldom to an earlier time.
    if (auto const end = environment_number<double>("SLURM_JOB_END_TIME")) {
        job.seconds_left = *end - seconds_since_1970();
        return;
    }
    if (auto const left = output_of({"squeue", "-h", "-j", job.id, "-o", "%L"}, limit_s)) {
        job.seconds_left = seconds_of(trimmed(*left));
    }
}

void ask_pbs(BatchJob& job, double limit_s) {
    auto const listing = output_of({"qstat", "-f", job.id}, limit_s).value_or("");
    job.restarts = std::max(number_of<long>(qstat_value(listing, "run_count")).value_or(1) - 1, 0L);
    auto walltime = seconds_of(qstat_value(listing, "Resource_List.walltime"));
    if (!walltime) {
        walltime = environment_number<double>("PBS_WALLTIME");
    }
    if (!walltime) {
        return;
    }
    // resources_used lags behind by minutes, so the start counts where it is known.
    double used = job_age();
    if (auto const start = date_of(qstat_value(listing, "stime")); used <= 0 && start) {
        used = seconds_since_1970() - *start;
    } else if (used <= 0) {
        used = seconds_of(qstat_value(listing, "resources_used.walltime")).value_or(0);
    }
    job.seconds_left = *walltime - used;
}

} // namespace

BatchJob batch_job(double limit_s) {
    BatchJob job;
    if (job.id = environment_text("SLURM_JOB_ID"); !job.id.empty()) {
        job.scheduler = "slurm";
        ask_slurm(job, limit_s);
    } else if (job.id = environment_text("PBS_JOBID"); !job.id.empty()) {
        job.scheduler = "pbs";
        ask_pbs(job, limit_s);
    }
    return job;
}

double job_age() {
    auto const start = environment_number<double>("LOCKSTEP_JOB_STARTED");
    return start ? seconds_since_1970() - *start : 0;
}

std::optional<double> seconds_of(std::string_view clock) {
    double days = 0;
    if (auto const dash = clock.find('-'); dash != std::string_view::npos) {
        auto const number = number_of<double>(clock.substr(0, dash));
        if (!number) {
            return std::nullopt;
        }
        days = *number;
        clock.remove_prefix(dash + 1);
    }
    auto const parts = split(clock, ':');
    if (parts.empty() || parts.size() > 3) {
        return std::nullopt;
    }
    double seconds = 0;
    for (auto const& part : parts) {
        auto const number = number_of<double>(part);
        if (!number) {
            return std::nullopt;
        }
        seconds = 60 * seconds + *number;
    }
    return 86400 * days + seconds;
}

} // namespace lockstep
