#include "base/child.hpp"

#include "base/awake_clock.hpp"
#include "base/clean_up.hpp"
#include "base/descriptor.hpp"
#include "base/environment.hpp"
#include "base/file.hpp"
#include "base/signals_blocked.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace lockstep {

namespace {

constexpr double last_wait_s = 1; ///< for what was killed; it may hang in a disk
constexpr double launcher_ends_within_s = 15;
constexpr int not_found = 127; ///< as shells say it
constexpr std::size_t max_text = std::size_t{64} << 20;

/// Reads until the writer is gone; false when the time is over before.
bool read_all(int descriptor, double limit_s, AwakeClock& clock, std::string& text) {
    std::array<char, 4096> part{};
    while (true) {
        auto const left_s = std::min(limit_s - clock.seconds(), AwakeClock::look_every_s);
        if (left_s <= 0) {
            return false;
        }
        pollfd wait{.fd = descriptor, .events = POLLIN, .revents = 0};
        if (::poll(&wait, 1, static_cast<int>(1e3 * left_s) + 1) <= 0) {
            continue;
        }
        auto const got = ::read(descriptor, part.data(), part.size());
        if (got == 0) {
            return true;
        }
        if (got > 0 && text.size() < max_text) {
            text.append(part.data(), static_cast<std::size_t>(got));
        } else if (got > 0 || errno != EINTR) {
            return false; // or it never stops talking
        }
    }
}

/// Waits for a process to end; nothing when it has not in time.
std::optional<int> status_of(pid_t child, double limit_s, AwakeClock clock = {}) {
    int status = 0;
    while (true) {
        auto const ended = ::waitpid(child, &status, WNOHANG);
        if (ended == child) {
            return status;
        }
        if ((ended < 0 && errno != EINTR) || clock.seconds() >= limit_s) {
            return std::nullopt;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
}

/// What a child starts with.
struct Setting {
    char* const* variables = nullptr;
    int output = -1;             ///< a descriptor of ours
    int errors = -1;             ///< likewise; -1: discarded
    int signal_of_end = SIGKILL; ///< that it gets when we are killed
    int* failure = nullptr;      ///< set where the program cannot be started; may be null
};

/// The child's part between vfork and exec, with the parent's memory. It ends with the parent: who
/// is killed cannot end it.
void become(std::vector<char*> const& words, Setting const& setting, pid_t parent) {
    ::setsid(); // a group of its own, without a terminal on which a question would wait unseen
    ::prctl(PR_SET_PDEATHSIG, setting.signal_of_end);
    if (::getppid() != parent) { // it died before that could be noticed
        return;
    }
    int const nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    ::dup2(nothing, STDIN_FILENO);
    ::dup2(setting.output, STDOUT_FILENO);
    ::dup2(setting.errors < 0 ? nothing : setting.errors, STDERR_FILENO);
    for (int number = 1; number < NSIG; ++number) {
        if (number != SIGHUP) { // which may be ignored for both
            static_cast<void>(std::signal(number, SIG_DFL));
        }
    }
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::execvpe(words[0], words.data(), setting.variables);
    if (setting.failure != nullptr) {
        *setting.failure = errno;
    }
}

/// Starts a program in a process group of its own; it leaves with 127 when there is no such
/// program; -1 when there is no process to be had.
pid_t start(std::vector<std::string> const& words, Setting const& setting) {
    auto const arguments = word_pointers(words);
    auto const parent = ::getpid();
    SignalsBlocked const blocked;  // the child runs no handler of ours
    pid_t const child = ::vfork(); // NOLINT(clang-analyzer-security.insecureAPI.vfork)
    if (child == 0) {
        become(arguments, setting, parent);
        ::_exit(not_found);
    }
    return child;
}

/// As shells say it.
int exit_code_of(int status) {
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/// Waits for a child's end: as shells say it; -1 where that cannot be determined.
int wait_for_child(pid_t child) {
    int status = 0;
    pid_t ended = -1;
    while ((ended = ::waitpid(child, &status, 0)) < 0 && errno == EINTR) {
    }
    if (ended != child) {
        return -1;
    }
    return exit_code_of(status);
}

/// Ends a child, and those that it started.
void end_group(pid_t child) {
    if (child > 0) {
        ::kill(-child, SIGKILL);
        status_of(child, last_wait_s);
    }
}

/// A launcher ends its ranks itself, on other hosts, too.
void ask_group_to_end(pid_t child) {
    if (child > 0) {
        ::kill(-child, SIGTERM);
        if (!status_of(child, launcher_ends_within_s)) {
            end_group(child);
        }
    }
}

} // namespace

std::vector<char*> word_pointers(std::vector<std::string> const& words) {
    std::vector<char*> all;
    all.reserve(words.size() + 1);
    for (auto const& word : words) {
        all.push_back(const_cast<char*>(word.c_str()));
    }
    all.push_back(nullptr);
    return all;
}

std::filesystem::path own_program() {
    return std::filesystem::read_symlink("/proc/self/exe");
}

int run_child(std::vector<std::string> const& words, std::vector<std::string> const& environment,
              std::filesystem::path const& output) {
    auto variables = environment;
    for (char** own = environ; *own != nullptr; ++own) {
        std::string const variable = *own;
        auto const name = variable.substr(0, variable.find('=') + 1);
        if (std::none_of(environment.begin(), environment.end(),
                         [&](auto const& set) { return set.starts_with(name); })) {
            variables.push_back(variable);
        }
    }
    Descriptor const log(
        ::open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0644));
    if (!log.is_open()) {
        throw creation_error(concat("cannot write ", output.string()), output.parent_path(), errno);
    }
    int failure = 0;
    pid_t const child = start(words, {.variables = word_pointers(variables).data(),
                                      .output = log.get(),
                                      .errors = log.get(),
                                      .signal_of_end = SIGTERM,
                                      .failure = &failure});
    failure = child < 0 ? errno : failure;
    CleanUp const clean_up([child] { ask_group_to_end(child); });
    auto const code = child < 0 ? -1 : wait_for_child(child);
    if (failure != 0) {
        throw Error(ExitCode::unavailable,
                    {concat("cannot start ", words.front()), system_text(failure),
                     "Load the module that provides this program, or choose another launcher with "
                     "--launcher"});
    }
    return code;
}

ChildProcess::ChildProcess(std::vector<std::string> const& words)
    : process_(start(words, {.variables = word_pointers(initial_environment()).data(),
                             .output = STDERR_FILENO,
                             .errors = STDERR_FILENO})) {
    if (process_ <= 0) {
        code_ = not_found;
    }
}

ChildProcess::~ChildProcess() {
    if (!code_) {
        end_group(process_);
    }
}

std::optional<int> ChildProcess::wait(double seconds) {
    if (!code_) {
        if (auto const status = status_of(process_, seconds)) {
            code_ = exit_code_of(*status);
        }
    }
    return code_;
}

std::optional<std::string> output_of(std::vector<std::string> const& words, double limit_s) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
        return std::nullopt;
    }
    pid_t const child = start(words, {.variables = environ, .output = ends[1]});
    ::close(ends[1]);
    CleanUp const clean_up([child] { end_group(child); });
    AwakeClock clock;
    std::string text;
    bool const told = child > 0 && read_all(ends[0], limit_s, clock, text);
    ::close(ends[0]);
    if (child <= 0) {
        return std::nullopt;
    }
    // Having nothing more to say is not yet the end.
    auto const status = told ? status_of(child, limit_s, clock) : std::nullopt;
    if (!status) {
        end_group(child);
    }
    bool const well = status && WIFEXITED(*status) && WEXITSTATUS(*status) == 0;
    return well ? std::optional(text) : std::nullopt;
}

} // namespace lockstep
