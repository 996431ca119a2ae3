#include "attempt.hpp"

#include "base/arrival.hpp"
#include "base/environment.hpp"
#include "base/host_facts.hpp"
#include "base/process.hpp"
#include "base/start_limit.hpp"
#include "base/text.hpp"
#include "launch/ended_ranks.hpp"

#include <algorithm>
#include <csignal>
#include <iostream>
#include <unistd.h>
#include <utility>

#include "arrivals_directory.hpp"

namespace lockstep::launch {

namespace {

constexpr int signal_base = 128; ///< in an exit code, plus the signal's number
constexpr double look_every_s = 0.1;
constexpr double count_every_s = 2;
constexpr double ask_again_s = 2;
constexpr double hears_within_s = 20; ///< a wish to end is passed on then, whoever has come
constexpr double ends_within_s = 30;
constexpr double records_every_s = 30;
constexpr double last_records_s = 1; ///< of ranks, after they have told the root cause
constexpr double failure_every_s = 0.25;
constexpr double ended_alone_s = 5;       ///< in which mpirun ends of an error of the run's own
constexpr double ranks_name_host_s = 4;   ///< after the launcher has lost it
constexpr double end_limit_s = 15;        ///< from TERM to the launcher to its KILL
constexpr double last_wait_s = 15;        ///< for what was killed
constexpr double ranks_tell_first_s = 15; ///< ranks that wait for others say so themselves

LauncherProcess started(std::vector<std::string> const& words, ArrivalsDirectory const& arrivals,
                        LaunchListener& listener) {
    // No other thread looks at the environment. NOLINTNEXTLINE(concurrency-mt-unsafe)
    ::setenv("LOCKSTEP_ARRIVALS", arrivals.path().c_str(), 1);
    return {words, [&listener](std::string_view text) { listener.hear(text); }};
}

/// A look while the run continues: a disk that fails for a moment ends nothing.
template <class Found>
Found seen(Watcher const& watcher, Found (Watcher::*look)() const) {
    try {
        return (watcher.*look)();
    } catch (Error const&) {
        return {};
    }
}

} // namespace

/// mpirun does not always name the rank whose signal its own code tells.
std::string left_with(int code) {
    constexpr int signals = 64;
    auto const text = concat("the launcher exited with code ", code);
    return code > signal_base && code <= signal_base + signals
               ? concat(text, ", because a process ended on signal ", code - signal_base)
               : text;
}

LaunchedAttempt::LaunchedAttempt(Start start, Watcher& watcher,
                                 std::filesystem::path const& directory)
    : start_(std::move(start)), watcher_(watcher), directory_(directory),
      arrivals_(directory, start_.continues), listener_([this](int rank) { return host_of(rank); }),
      process_(started(start_.words, arrivals_, listener_)), recovering_(start_.restart) {}

AttemptEnd LaunchedAttempt::wait_for_end() {
    std::optional<int> code;
    std::string late_why;
    bool ended_here = false;
    while (!code && !(code = process_.wait(look_every_s))) {
        now_ = clock_.seconds();
        pass_on_wish();
        if (late(late_why)) {
            code = end_late(late_why);
        } else if (loss_is_known()) {
            code = end_at_once();
        }
        ended_here = code.has_value();
    }
    AttemptEnd end{.code = *code,
                   .record = seen(watcher_, &Watcher::attempt),
                   .told = listener_.told(),
                   .verdict = listener_.verdict(),
                   .arrived = listener_.verdict() || any_arrived(arrivals_.path()),
                   .launcher_killed = process_.was_killed() && !ended_here,
                   .ranks = arrived_ranks(arrivals_.path(), start_.ranks),
                   .checkpoints_id = checkpoints_id_.empty()
                                         ? seen(watcher_, &Watcher::checkpoints_id)
                                         : checkpoints_id_};
    if (auto const step = listener_.continues_at(); step >= 0) { // its records are not written yet
        end.record.started = true;
        end.record.step = std::max(end.record.step, step);
        end.record.saved_step = std::max(end.record.saved_step, step);
    }
    if (!end.verdict) {
        end.verdict = verdict_;
    }
    end.by_own_signal = asked_at_ && !end.record.started && *code == signal_base + SIGUSR1;
    if (!end.verdict && end.told.empty() && !end.record.started) {
        // Of an attempt that was ended, nobody is stopped any more.
        end.verdict =
            late_why.empty() ? absent(missing(), left_with(*code)) : absent(missed_, late_why);
    }
    return end;
}

/// A rank that has only begun would die of the signal, which waits until all have left their marks.
/// A launcher that has only begun does not pass signals on yet: they are sent until it ends.
void LaunchedAttempt::pass_on_wish() {
    if (SignalRequests::pending() == 0) {
        return;
    }
    if (!all_came_) {
        count_marks();
    }
    bool const can_hear = all_came_ || now_ > hears_within_s;
    if (can_hear && (!asked_at_ || now_ - *asked_at_ > ask_again_s)) {
        asked_at_ = now_;
        process_.signal(SIGUSR1);
    }
}

/// Whether the attempt takes too long to begin, since a rank has not come or a restart has done no
/// step; or to end: mpirun may wait for a host that is cut off until TCP gives up, a quarter of an
/// hour.
bool LaunchedAttempt::late(std::string& why) {
    if (!told_at_ && !listener_.told().empty()) {
        told_at_ = now_;
    }
    if (told_at_ && now_ - *told_at_ > ends_within_s) {
        why = concat("the run did not end within ", duration_text(ends_within_s),
                     " of the root cause");
        return true;
    }
    if (now_ - counted_at_ > count_every_s) {
        counted_at_ = now_;
        bool const began = stepped();
        if (began && checkpoints_id_.empty()) { // where its disk may be gone by the end
            checkpoints_id_ = seen(watcher_, &Watcher::checkpoints_id);
        }
        if (!all_came_ || !began) {
            count_marks();
        }
        if ((!began && missing_too_long(why)) || (all_came_ && stopped_too_long(why)) ||
            ended_too_long(why)) {
            return true;
        }
    }
    recovering_ = recovering_ && !stepped();
    if (recovering_ && now_ > start_.limit_s) {
        count_marks();
        why = concat("no step was completed within ", duration_text(start_.limit_s),
                     " of the restart (the limit is fault-tolerance.recovery-timeout-seconds)");
        return true;
    }
    return false;
}

/// Whether the attempt has done a step; one without its run's directory says so itself.
bool LaunchedAttempt::stepped() const {
    return listener_.continues_at() >= 0 || seen(watcher_, &Watcher::stepped);
}

/// Where no marks can be left, nobody is known to be missing.
std::vector<int> LaunchedAttempt::missing() const {
    return arrivals_.path().empty() ? std::vector<int>()
                                    : missed_ranks(arrivals_.path(), start_.ranks);
}

void LaunchedAttempt::count_marks() {
    missed_ = missing();
    all_came_ = all_came_ || (missed_.empty() && !arrivals_.path().empty()) || stepped();
    if (all_came_) {
        here_ = processes_here(arrivals_.path(), start_.ranks);
    }
}

bool LaunchedAttempt::lasts(bool is_so, std::optional<double>& since, double limit_s) const {
    since = is_so ? std::optional(since.value_or(now_)) : std::nullopt;
    return since && now_ - *since > limit_s;
}

/// Whether a rank has not come, or has stopped before the first step: once MPI has started, the
/// others wait for it as long as for any message.
bool LaunchedAttempt::missing_too_long(std::string& why) {
    auto const limit_s = start_limit_s(start_.limit_s);
    if (!lasts(!missed_.empty(), missing_since_, limit_s + ranks_tell_first_s)) {
        return false;
    }
    why = concat("not all ranks started within ", duration_text(limit_s),
                 " (the limit is LOCKSTEP_START_SECONDS or, if that is not set, "
                 "fault-tolerance.recovery-timeout-seconds)");
    return true;
}

/// Whether the ranks have ended, but the launcher has not: it is stopped, or waits for a daemon
/// that is. Where no rank is on this host, the run's own record must do.
bool LaunchedAttempt::ended_too_long(std::string& why) {
    bool const gone_here = !here_.empty() && std::ranges::none_of(here_, [](auto const& each) {
        return process_state(each.second).has_value();
    });
    if (here_.empty() && all_came_ && now_ - records_read_at_ > records_every_s) {
        records_read_at_ = now_;
        end_on_record_ = !seen(watcher_, &Watcher::attempt).end.empty();
    }
    if (!lasts(gone_here, gone_since_, ends_within_s) &&
        !lasts(end_on_record_, over_since_, start_limit_s(start_.limit_s))) {
        return false;
    }
    why = concat("the launcher has not ended within ",
                 duration_text(now_ - *(gone_here ? gone_since_ : over_since_)),
                 " of the ranks, because it is stopped or waits for a host");
    return true;
}

/// Whether all ranks of this host are stopped: then none can say so.
bool LaunchedAttempt::stopped_too_long(std::string& why) {
    bool const stopped_now = !here_.empty() && std::ranges::all_of(here_, [](auto const& each) {
        return is_stopped(each.second);
    });
    if (!lasts(stopped_now, stopped_since_, start_limit_s(start_.limit_s) + ranks_tell_first_s)) {
        return false;
    }
    why = "all ranks of this host are stopped";
    verdict_ = stopped();
    return true;
}

LauncherVerdict LaunchedAttempt::stopped() const {
    std::vector<int> ranks;
    for (auto const& [rank, process] : here_) {
        ranks.push_back(rank);
    }
    return {concat(ranks_text(ranks), " (", own_host(), ")"),
            own_host(),
            false,
            {concat(ranks.size() == 1 ? "it is" : "they are", " stopped (SIGSTOP)"),
             "no rank of this host continues", "Look at that host for what has stopped them"}};
}

/// Whether all that mpirun has still to do is to end ranks, for which it takes seconds, or waits
/// for a host that is lost until its network has given up: a rank has told that another is lost, or
/// mpirun that a host is. A step of Slurm's is ended by srun alone.
bool LaunchedAttempt::loss_is_known() {
    if (start_.words.front() != "mpirun") {
        return false;
    }
    if (!host_lost_at_ && listener_.verdict() && listener_.verdict()->whole_host) {
        host_lost_at_ = now_;
    }
    if (!told_at_) {
        return host_lost_at_ && now_ - *host_lost_at_ > ranks_name_host_s;
    }
    if (now_ - *told_at_ < last_records_s || now_ - failure_read_at_ < failure_every_s) {
        return false;
    }
    failure_read_at_ = now_;
    if (::access(directory_.c_str(), W_OK) != 0) { // nothing is on record
        return now_ - *told_at_ > ended_alone_s;
    }
    return seen(watcher_, &Watcher::attempt).failure == static_cast<int>(ExitCode::rank_lost);
}

int LaunchedAttempt::end_at_once() {
    std::vector<int> processes;
    for (auto const& each : processes_here(arrivals_.path(), start_.ranks)) {
        processes.push_back(each.second);
    }
    end_ranks(processes, environment_text("LOCKSTEP_LAUNCH"));
    process_.kill_all();
    for (AwakeClock clock; !process_.wait(0) && clock.seconds() < last_wait_s;) {
        ::usleep(10'000); // who still holds its pipe is not waited for
    }
    remove_session(process_.id());
    return static_cast<int>(ExitCode::rank_lost);
}

int LaunchedAttempt::end_late(std::string const& why) {
    std::cerr << "lockstep launch: " << why << ": ending the run\n";
    AwakeClock clock;
    process_.signal(SIGTERM);
    while (!process_.wait(look_every_s)) {
        if (clock.seconds() > end_limit_s) {
            process_.kill_all();
        }
        if (clock.seconds() > end_limit_s + last_wait_s) {
            break; // what a disk holds ends when the disk lets it
        }
    }
    process_.kill_all(); // what it has left behind
    return static_cast<int>(ExitCode::rank_lost);
}

/// Who has left no mark, where others have, or none has.
std::optional<LauncherVerdict> LaunchedAttempt::absent(std::vector<int> const& missed,
                                                       std::string const& why) const {
    if (missed.empty()) {
        return std::nullopt;
    }
    std::vector<std::string> hosts;
    for (int const rank : missed) {
        auto const host = host_of(rank);
        if (!host.empty() && (hosts.empty() || hosts.back() != host)) {
            hosts.push_back(host);
        }
    }
    return LauncherVerdict{
        concat(ranks_text(missed), hosts.empty() ? "" : concat(" (", joined(hosts, ", "), ")")),
        hosts.size() == 1 ? hosts.front() : "",
        false,
        {missing_text(missed), concat(why, ", and MPI had not started"),
         concat("Look at ", hosts.size() > 1 ? "those hosts" : "that host",
                " and at the messages above")}};
}

/// Ranks fill hosts in their order.
std::string LaunchedAttempt::host_of(int rank) const {
    int first_of_next = 0;
    for (auto const& host : start_.hosts) {
        first_of_next += host.ranks;
        if (rank < first_of_next) {
            return host.name.empty() ? own_host() : host.name;
        }
    }
    return "";
}

} // namespace lockstep::launch
