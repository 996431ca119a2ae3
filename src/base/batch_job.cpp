#include "base/batch_job.hpp"

#include "base/child.hpp"
#include "base/environment.hpp"
#include "base/number.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <ctime>

namespace lockstep {

namespace {

constexpr char const* job_start_variable = "LOCKSTEP_JOB_STARTED";

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

constexpr double latest = 1e11;       ///< seconds since 1970: some thousand years from now
constexpr double clocks_apart_s = 60; ///< of two hosts, at most

/// A time in seconds since 1970; nothing for what can be none.
std::optional<double> time_of(std::string const& text) {
    auto const seconds = number_of<double>(text);
    return seconds && *seconds > 0 && *seconds < latest ? seconds : std::nullopt;
}

std::optional<double> start_of(std::string const& text) {
    auto const start = time_of(text);
    return start && *start < seconds_since_1970() + clocks_apart_s ? start : std::nullopt;
}

/// What a variable says of the job's end; a warning where it says what cannot be read.
std::optional<double> said_by(char const* name,
                              std::optional<double> (*meaning)(std::string const&),
                              char const* expected, BatchJob& job) {
    auto const text = environment_text(name);
    if (text.empty()) {
        return std::nullopt;
    }
    auto const value = meaning(text);
    if (!value) {
        job.warnings.push_back(
            concat("warning: ", name, " = ", text, " is ignored: expected ", expected));
    }
    return value;
}

void ask_slurm(BatchJob& job, double limit_s) {
    job.restarts = environment_number<long>("SLURM_RESTART_COUNT").value_or(0);
    // Since Slurm 23.11; an administrator may have moved the end since, seldom to an earlier time.
    if (auto const end = said_by("SLURM_JOB_END_TIME", time_of, "seconds since 1970", job)) {
        job.seconds_left = *end - seconds_since_1970();
        return;
    }
    if (auto const left = output_of({"squeue", "-h", "-j", job.id, "-o", "%L"}, limit_s)) {
        bool const is_over = trimmed(*left) == "INVALID"; // below 0: Slurm has an OverTimeLimit
        job.seconds_left = is_over ? 0 : seconds_of(trimmed(*left));
    }
}

void ask_pbs(BatchJob& job, double limit_s) {
    auto const listing = output_of({"qstat", "-f", job.id}, limit_s).value_or("");
    job.restarts = std::max(number_of<long>(qstat_value(listing, "run_count")).value_or(1) - 1, 0L);
    auto walltime = seconds_of(qstat_value(listing, "Resource_List.walltime"));
    if (!walltime) {
        walltime = said_by(
            "PBS_WALLTIME", [](std::string const& text) { return seconds_of(text); },
            "seconds, or hours:minutes:seconds", job);
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
    said_by(job_start_variable, start_of, "seconds since 1970, not in the future", job);
    return job;
}

double job_age() {
    auto const start = start_of(environment_text(job_start_variable));
    return start ? std::max(seconds_since_1970() - *start, 0.0) : 0;
}

std::optional<double> seconds_left(double walltime, BatchJob const& job) {
    if (walltime <= 0) {
        return job.seconds_left;
    }
    auto const left = walltime - job_age();
    return std::min(left, job.seconds_left.value_or(left));
}

std::string job_end_text(double seconds_left) {
    auto const end = static_cast<std::time_t>(seconds_since_1970() + seconds_left);
    std::tm parts{};
    ::gmtime_r(&end, &parts);
    std::array<char, 32> date{};
    static_cast<void>(std::strftime(date.data(), date.size(), "%Y-%m-%d %H:%M:%S", &parts));
    return concat("job ends at ", date.data(), " UTC, in ",
                  duration_text(std::max(seconds_left, 0.0)));
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
    auto const all = 86400 * days + seconds;
    return std::isfinite(all) && all >= 0 ? std::optional(all) : std::nullopt;
}

} // namespace lockstep
