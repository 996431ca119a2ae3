#include "supervisor.hpp"

#include "base/awake_clock.hpp"
#include "base/clock.hpp"
#include "base/host_facts.hpp"
#include "base/line_reader.hpp"
#include "base/partial_file.hpp"
#include "base/text.hpp"
#include "lockstep/base/signals.hpp"
#include "monitor/root_cause.hpp"
#include "monitor/start_failure.hpp"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <unistd.h>

#include "attempt.hpp"
#include "job_hosts.hpp"

namespace lockstep::launch {

namespace {

constexpr double ranks_log_within_s = 3; ///< what they find once their launcher has gone
constexpr double first_pause_s = 4; ///< before the second restart; four times as long each time
constexpr double longest_pause_s = 60;

/// Calls `take` with the lines of a run's log, one by one, until it returns true. A log that cannot
/// be read says nothing.
template <class Take>
void each_logged(std::filesystem::path const& directory, std::uintmax_t from, Take const& take) {
    try {
        LineReader log(directory / "log.txt", from);
        for (std::string line; log.next(line) && !take(line);) {
        }
    } catch (Error const&) {
        return;
    }
}

bool log_says(std::filesystem::path const& directory, std::string const& line) {
    bool said = false;
    each_logged(directory, 0, [&](std::string const& each) { return said = each == line; });
    return said;
}

/// The root cause that a rank has logged since; empty: none has.
std::string logged_since(std::filesystem::path const& directory, std::uintmax_t bytes) {
    std::string told;
    each_logged(directory, bytes, [&](std::string const& line) {
        told = line.starts_with("lockstep: root cause: ") ? line : "";
        return !told.empty();
    });
    return told;
}

/// A launcher that was killed passes on nothing: what a rank logs meanwhile is told here.
void hear_log(std::filesystem::path const& directory, std::uintmax_t bytes, AttemptEnd& end) {
    if (!end.record.started || !end.told.empty() || end.verdict) {
        return;
    }
    for (AwakeClock clock; end.told.empty() && clock.seconds() < ranks_log_within_s;) {
        ::usleep(50'000);
        end.told = logged_since(directory, bytes);
    }
    if (!end.told.empty()) {
        std::cerr << end.told << "\n";
    }
}

/// A run that is finished begins no attempt: every rank came, and all left content.
bool had_nothing_to_do(AttemptEnd const& end) {
    return end.code == 0 && end.arrived && !end.record.started && end.told.empty() && !end.verdict;
}

LauncherVerdict cut_off() {
    return {.who = concat("all ranks of ", own_host()),
            .host = own_host(),
            .whole_host = true,
            .text = {"this host has lost contact with all other hosts",
                     "this host is cut off from the network", "Look at this host's network"}};
}

/// Whether the launcher says of a host that does not answer that it was lost: what ranks that the
/// launcher ended make of it follows from that. mpirun may miss a host because its own is cut off:
/// the ranks know more of one that answers.
bool knows_better(AttemptEnd const& end, std::vector<Host> const& answering) {
    bool const host_lost =
        end.verdict && end.verdict->whole_host &&
        std::ranges::none_of(answering, [&](auto const& host) {
            return end.verdict->host != own_host() && is_same_host(host.name, end.verdict->host);
        });
    bool const named =
        host_lost && end.told.find(concat("(", end.verdict->host)) != std::string::npos;
    return end.told.empty() || (host_lost && !named);
}

/// Tells the root cause where no rank could, or where a rank that the launcher ended was blamed
/// though a host had been lost before.
///
/// Returns  the host that is named; empty where none is
std::string tell_cause(LaunchPlan const& plan, AttemptEnd const& end,
                       std::vector<Host> const& answering) {
    monitor::RootCause cause;
    cause.set_run(plan.directory, [] { return std::nullopt; });
    if (!knows_better(end, answering)) {
        // A host that may be cut off itself leaves the log alone: that it was heard here decides.
        if (end.record.started && !log_says(plan.directory, end.told)) {
            cause.note(end.told + "\n");
        }
        return host_named_in(end.told);
    }
    if (end.record.started) {
        cause.set_on_record();
    }
    auto const verdict = end.verdict.value_or(
        LauncherVerdict{.who = "a rank",
                        .host = "",
                        .whole_host = false,
                        .text = {left_with(end.code), "neither a rank nor the launcher reports why",
                                 "Read the messages above, and check the hosts"}});
    auto const place = end.record.step > 0  ? concat(" in training at step ", end.record.step)
                       : end.record.started ? std::string(" in training")
                                            : std::string(" in start-up");
    cause.tell(concat(verdict.who, place), Error(ExitCode::rank_lost, verdict.text));
    return verdict.host;
}

/// Why MPI did not start, where that is this host's: no restart would help.
std::optional<Error> hindrance_of(AttemptEnd const& end) {
    bool const by_rank = end.told.find("MPI did not start") != std::string::npos;
    return !end.record.started && (end.told.empty() || by_rank) ? monitor::what_hinders_mpi()
                                                                : std::nullopt;
}

std::string names_of(std::vector<Host> const& hosts) {
    std::vector<std::string> names;
    names.reserve(hosts.size());
    for (auto const& host : hosts) {
        names.push_back(host.name.empty() ? "this host" : host.name);
    }
    return joined(names, ", ");
}

/// The words that start the ranks, with what they need to know on other hosts, too.
LaunchedAttempt::Start start_of(LaunchPlan const& plan, std::vector<Host> const& hosts,
                                bool restart, std::string const& checkpoints_id) {
    LaunchedAttempt::Start start{.words = launch_words(plan, hosts),
                                 .hosts = hosts,
                                 .ranks = ranks_on(plan, hosts),
                                 .restart = restart,
                                 .continues = !checkpoints_id.empty(),
                                 .limit_s = plan.recovery_timeout_s};
    std::vector<std::string> passed_on{"LOCKSTEP_LAUNCH", "LOCKSTEP_RESTARTS", "LOCKSTEP_ARRIVALS"};
    if (!checkpoints_id.empty()) {
        // No other thread looks at the environment. NOLINTNEXTLINE(concurrency-mt-unsafe)
        ::setenv("LOCKSTEP_CONTINUES", checkpoints_id.c_str(), 1);
        passed_on.emplace_back("LOCKSTEP_CONTINUES");
    }
    if (plan.launcher == "mpirun") {
        for (auto const& variable : passed_on) {
            start.words.insert(start.words.begin() + 1, {"-x", variable});
        }
    }
    if (restart && !plan.is_search) { // whatever the first start was
        start.words.insert(start.words.end(), {"--checkpoint.resume", "auto"});
    }
    return start;
}

/// All attempts are of one job: a rank that outlives its launcher, cut off, does not hold the
/// directory against the next. Ranks make copies for the next attempt where there may be one.
void name_launch(LaunchPlan const& plan) {
    // Before there are threads. NOLINTBEGIN(concurrency-mt-unsafe)
    ::setenv("LOCKSTEP_LAUNCH", concat("launch-", new_token(), "-", utc_now()).c_str(), 1);
    ::setenv("LOCKSTEP_RESTARTS", std::to_string(plan.restarts).c_str(), 1);
    ::unsetenv("LOCKSTEP_CONTINUES");
    // NOLINTEND(concurrency-mt-unsafe)
}

/// A step of Slurm's waits for the one before it, which does not end while a node of it is gone.
void let_steps_overlap() {
    // No other thread looks at the environment. NOLINTNEXTLINE(concurrency-mt-unsafe)
    ::setenv("SLURM_OVERLAP", "1", 0);
}

std::unique_ptr<Watcher> watcher_of(LaunchPlan const& plan) {
    if (plan.is_search) {
        return std::make_unique<SearchWatcher>(plan.directory);
    }
    return std::make_unique<RunWatcher>(plan.directory);
}

/// A disk that fails tells nothing of earlier attempts, and ends no run that has begun.
void begin_attempt(Watcher& watcher) {
    try {
        watcher.begin_attempt();
    } catch (Error const&) {
        return;
    }
}

/// Whether the pause came to its end before a wish to leave.
bool pause(double seconds) {
    for (AwakeClock clock; clock.seconds() < seconds;) {
        if (SignalRequests::pending() != 0) {
            return false;
        }
        ::usleep(50'000);
    }
    return true;
}

/// The first restart begins at once: only what fails again and again waits.
double pause_before(std::int64_t restart) {
    return restart < 2 ? 0
                       : std::min(first_pause_s * std::pow(4.0, static_cast<double>(restart - 2)),
                                  longest_pause_s);
}

} // namespace

ExitCode supervise(LaunchPlan const& plan) {
    SignalRequests const signals(SignalRequests::Hangup::request);
    static_cast<void>(std::signal(SIGPIPE, SIG_IGN)); // the ranks are looked after, whoever listens
    if (plan.launcher == "mpirun") {
        auto const here = std::vector<Host>{plan.hosts.front()};
        monitor::require_files_for_mpirun(ranks_on(plan, here));
    }
    name_launch(plan);
    auto const watching = watcher_of(plan);
    auto& watcher = *watching;
    JobHosts hosts(plan, watcher);
    auto saved_step = watcher.attempt().saved_step;
    bool restart = false;
    std::string checkpoints_id;
    for (std::int64_t without_progress = 0;; restart = true) {
        if (signals.pending() != 0 && !restart) {
            std::cerr << "lockstep launch: a signal asked to end the run before it began\n";
            return ExitCode::interrupted;
        }
        begin_attempt(watcher);
        auto const logged = size_of(plan.directory / "log.txt");
        if (restart) {
            let_steps_overlap();
        }
        auto start = start_of(plan, hosts.chosen(), restart, checkpoints_id);
        auto const line = joined(start.words, " ");
        auto end = LaunchedAttempt(std::move(start), watcher, plan.directory).wait_for_end();
        checkpoints_id = end.checkpoints_id.empty() ? checkpoints_id : end.checkpoints_id;
        auto const& record = end.record;
        bool const begun = record.started || end.arrived || !end.told.empty();
        auto const ending = ending_of(end, signals.pending() != 0);
        if (ending.road == Road::word) {
            if (!begun && ending.word != ExitCode::ok) {
                std::cerr << "lockstep launch: " << left_with(end.code)
                          << " before the run began\n";
            }
            return ending.word;
        }
        if (end.by_own_signal) {
            std::cerr << "lockstep launch: a signal asked to end the run while it started\n";
            return ExitCode::interrupted;
        }
        if (auto const hindrance = hindrance_of(end)) {
            if (end.told.empty()) {
                throw Error(*hindrance);
            }
            return hindrance->code();
        }
        if (!begun && !restart && end.code < 64) {
            throw Error(ExitCode::unavailable,
                        {left_with(end.code), "the run did not begin",
                         concat("Read the messages above for the reason. The command was ", line)});
        }
        if (had_nothing_to_do(end)) {
            return ExitCode::ok;
        }
        bool const host_is_lost = end.verdict && end.verdict->whole_host;
        bool const asked_to_end = signals.pending() != 0;
        if (host_is_lost || !asked_to_end) { // else nothing depends on who answers
            hosts.ask_all(end);
        }
        if (host_is_lost && hosts.is_cut_off()) {
            end.verdict = cut_off(); // the launcher misses all the others
        }
        hear_log(plan.directory, logged, end);
        if (auto const missed = hosts.missed(end)) {
            end.verdict = missed;
        }
        auto const blamed = tell_cause(plan, end, hosts.answering());
        if (signals.pending() != 0) {
            std::cerr << "lockstep launch: a rank was lost (exit code " << end.code
                      << "): not restarted, because a signal asked to end the run\n";
            return ExitCode::rank_lost;
        }
        hosts.judge(end, ending.road, blamed);
        without_progress = record.saved_step > saved_step ? 1 : without_progress + 1;
        saved_step = std::max(saved_step, record.saved_step);
        auto const& next = hosts.chosen();
        auto const count = static_cast<std::int64_t>(next.size());
        if (without_progress > plan.restarts || count < std::max<std::int64_t>(plan.min_hosts, 1)) {
            std::cerr << "lockstep launch: a rank was lost (exit code " << end.code << "): "
                      << (next.empty() ? "no host answers"
                          : count < plan.min_hosts
                              ? concat("only ", count, " of ", plan.hosts.size(),
                                       count == 1 ? " hosts answers" : " hosts answer",
                                       ", and --min-hosts is ", plan.min_hosts)
                              : concat("gave up after ", amount_of(plan.restarts, "restart"),
                                       " without a newer checkpoint"))
                      << "\n";
            return ExitCode::rank_lost;
        }
        auto const seconds = pause_before(without_progress);
        std::cerr << "lockstep launch: a rank was lost (exit code " << end.code << "): restart "
                  << without_progress << " of " << plan.restarts << " on " << names_of(next)
                  << (seconds > 0 ? concat(" in ", duration_text(seconds)) : ", at once")
                  << std::endl;
        if (!pause(seconds)) {
            std::cerr << "lockstep launch: a signal asked to end the run between two attempts\n";
            return saved_step < 0 ? ExitCode::rank_lost : ExitCode::interrupted;
        }
    }
}

} // namespace lockstep::launch
