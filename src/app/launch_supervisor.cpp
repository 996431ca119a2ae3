#include "launch_supervisor.hpp"

#include "lockstep/base/clock.hpp"
#include "lockstep/base/signals.hpp"
#include "lockstep/base/text.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <iostream>
#include <optional>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch_record.hpp"

namespace lockstep::app {

namespace {

constexpr double probe_limit_s = 10;
constexpr double end_limit_s = 15; ///< from TERM to the launcher to its KILL

/// The launcher in a process group of its own: a keyboard's interrupt reaches this process alone,
/// which passes it on as USR1. The launcher ends when this process dies.
pid_t start(std::vector<std::string> const& words) {
    std::vector<char*> arguments;
    for (auto const& word : words) {
        arguments.push_back(const_cast<char*>(word.c_str()));
    }
    arguments.push_back(nullptr);
    pid_t const parent = ::getpid();
    pid_t const child = ::fork();
    if (child < 0) {
        throw system_error(concat("cannot start ", words[0]), errno, "Free some processes");
    }
    if (child > 0) {
        return child;
    }
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() == parent) { // else it died before it could be noticed
        int const nothing = ::open("/dev/null", O_RDONLY);
        ::dup2(nothing, STDIN_FILENO); // a group in the background may not read the terminal
        ::execvp(arguments[0], arguments.data());
        std::cerr << "lockstep: cannot start " << words[0] << ": " << std::strerror(errno)
                  << ". Load the module of your MPI\n";
    }
    ::_exit(static_cast<int>(ExitCode::unavailable));
}

/// The exit code of a child that has ended; -1 while it runs.
int code_of(pid_t child) {
    int status = 0;
    if (::waitpid(child, &status, WNOHANG) != child) {
        return -1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// One life of the run.
class Life {
  public:
    Life(std::vector<std::string> const& words, SignalRequests const& signals)
        : signals_(signals), child_(start(words)) {}

    /// Waits for the end, or for the first step to come within the limit (0: it may take any time).
    int wait(RunWatcher const& watcher, double recovery_timeout_s) {
        bool recovering = recovery_timeout_s > 0;
        int code = -1;
        while ((code = code_of(child_)) < 0) {
            ::usleep(100'000);
            pass_on();
            recovering = recovering && !watcher.stepped();
            if (recovering && watch_.seconds() > recovery_timeout_s) {
                std::cerr << "lockstep launch: no step within " << duration_text(recovery_timeout_s)
                          << " of the restart (fault-tolerance.recovery-timeout-seconds): ended\n";
                return end();
            }
        }
        return code;
    }

  private:
    /// A launcher that has only begun does not pass signals on yet: they are sent until it ends.
    void pass_on() {
        if (signals_.pending() != 0 && (!asked_ || since_asked_.seconds() > 2)) {
            asked_ = true;
            since_asked_.restart();
            ::kill(child_, SIGUSR1);
        }
    }

    int end() const {
        Stopwatch const watch;
        ::kill(child_, SIGTERM);
        while (code_of(child_) < 0) {
            ::usleep(100'000);
            if (watch.seconds() > end_limit_s) {
                ::kill(-child_, SIGKILL);
            }
        }
        return static_cast<int>(ExitCode::rank_lost);
    }

    SignalRequests const& signals_;
    pid_t child_;
    Stopwatch watch_;
    Stopwatch since_asked_;
    bool asked_ = false;
};

/// The run's own word on how a life ended; nothing where a rank was lost. A launcher that fell to a
/// signal, such as one that came once more while it left, has none: then the records tell.
std::optional<ExitCode> word_of(int code, LifeRecord const& record) {
    if (code >= static_cast<int>(ExitCode::usage) && code < static_cast<int>(ExitCode::rank_lost)) {
        return static_cast<ExitCode>(code);
    }
    if (record.end.empty() || (code != 0 && code < 128)) {
        return std::nullopt;
    }
    return record.end.ends_with("finished") ? ExitCode::ok : ExitCode::interrupted;
}

std::string names_of(std::vector<Host> const& hosts) {
    std::vector<std::string> names;
    for (auto const& host : hosts) {
        names.push_back(host.name.empty() ? "this host" : host.name);
    }
    return joined(names, ", ");
}

} // namespace

std::vector<std::string> launch_words(LaunchPlan const& plan, std::vector<Host> const& hosts) {
    std::int64_t ranks = 0;
    std::vector<std::string> slots;
    std::vector<std::string> names;
    for (auto const& host : hosts) {
        ranks += host.ranks;
        slots.push_back(concat(host.name, ":", host.ranks));
        names.push_back(host.name);
    }
    ranks = plan.most_ranks > 0 ? std::min(ranks, plan.most_ranks) : ranks;
    std::vector<std::string> words;
    bool const here_alone = hosts.size() == 1 && hosts[0].name.empty();
    if (plan.launcher == "srun") {
        words = {"srun", "--mpi=pmix", "--kill-on-bad-exit=1", "-n", std::to_string(ranks)};
        if (!here_alone) {
            words.insert(words.end(),
                         {"-N", std::to_string(hosts.size()), "-w", joined(names, ",")});
        }
    } else if (plan.launcher == "mpirun") {
        // A host that is cut off is noticed in about ten seconds, not in eight minutes.
        words = {"mpirun",
                 "-n",
                 std::to_string(ranks),
                 "--mca",
                 "oob_tcp_keepalive_time",
                 "5",
                 "--mca",
                 "oob_tcp_keepalive_intvl",
                 "2",
                 "--mca",
                 "oob_tcp_keepalive_probes",
                 "3"};
        if (!here_alone) {
            words.insert(words.end(), {"--host", joined(slots, ",")});
        }
        if (plan.oversubscribe) {
            words.insert(words.end(), {"--oversubscribe", "--bind-to", "none"});
        }
    }
    words.push_back(plan.program);
    words.insert(words.end(), plan.train.begin(), plan.train.end());
    return words;
}

ExitCode supervise(LaunchPlan const& plan) {
    SignalRequests const signals;
    RunWatcher watcher(plan.directory);
    auto hosts = plan.hosts;
    auto words = launch_words(plan, hosts);
    double recovery_timeout_s = 0;
    auto saved_step = watcher.life().saved_step;
    for (std::int64_t without_progress = 0;;) {
        watcher.begin_life();
        int const code = Life(words, signals).wait(watcher, recovery_timeout_s);
        auto const record = watcher.life();
        if (auto const word = word_of(code, record)) {
            return *word;
        }
        if (!record.started && recovery_timeout_s == 0 && code < 128) {
            throw Error(
                ExitCode::unavailable,
                {concat("the launcher left with ", code), "the run has not begun",
                 concat("See the messages above; it was started as: ", joined(words, " "))});
        }
        if (signals.pending() != 0) {
            std::cerr << "lockstep launch: asked to end, and a rank was lost (exit code " << code
                      << ")\n";
            return ExitCode::rank_lost;
        }
        without_progress = record.saved_step > saved_step ? 1 : without_progress + 1;
        saved_step = std::max(saved_step, record.saved_step);
        hosts = answering(plan.hosts, probe_limit_s);
        if (without_progress > plan.restarts || hosts.empty()) {
            std::cerr << "lockstep launch: a rank was lost (exit code " << code << "): "
                      << (hosts.empty() ? "no host answers"
                                        : concat("given up after ", plan.restarts,
                                                 " restarts without a newer checkpoint"))
                      << "\n";
            return ExitCode::rank_lost;
        }
        std::cerr << "lockstep launch: a rank was lost (exit code " << code << "): restart "
                  << without_progress << " of " << plan.restarts << " on " << names_of(hosts)
                  << std::endl;
        words = launch_words(plan, hosts);
        words.insert(words.end(), {"--checkpoint.resume", "auto"}); // whatever the first start was
        recovery_timeout_s = plan.recovery_timeout_s;
    }
}

} // namespace lockstep::app
