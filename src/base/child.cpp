#include "lockstep/base/child.hpp"

#include "lockstep/base/clock.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

extern char** environ;

namespace lockstep {

namespace {

constexpr double last_wait_s = 1; ///< for what was killed; it may hang in a disk
constexpr std::size_t max_text = std::size_t{64} << 20;

/// Reads until the writer is gone; false when the time is over before.
bool read_all(int descriptor, double limit_s, std::string& text) {
    Stopwatch const watch;
    std::array<char, 4096> part{};
    while (true) {
        auto const left = static_cast<int>(1e3 * (limit_s - watch.seconds()));
        pollfd wait{.fd = descriptor, .events = POLLIN, .revents = 0};
        if (left <= 0 || ::poll(&wait, 1, left) == 0) {
            return false;
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
std::optional<int> status_of(pid_t child, double limit_s) {
    Stopwatch const watch;
    int status = 0;
    while (true) {
        auto const ended = ::waitpid(child, &status, WNOHANG);
        if (ended == child) {
            return status;
        }
        if ((ended < 0 && errno != EINTR) || watch.seconds() >= limit_s) {
            return std::nullopt;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
}

/// Starts a program in a process group of its own, with its standard output in `output`; -1 when
/// there is no such program.
pid_t start(std::vector<std::string> const& words, int output) {
    auto const arguments = word_pointers(words);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    pid_t child = -1;
    ChildAttributes const attributes(ChildAttributes::Group::own);
    int const failed =
        ::posix_spawnp(&child, arguments[0], &actions, attributes.get(), arguments.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    return failed == 0 ? child : -1;
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

ChildAttributes::ChildAttributes(Group group) {
    sigset_t defaults;
    sigset_t none;
    ::sigfillset(&defaults);
    ::sigdelset(&defaults, SIGHUP);
    ::sigemptyset(&none);
    ::posix_spawnattr_init(&attributes_);
    ::posix_spawnattr_setsigdefault(&attributes_, &defaults);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    int const own_group = group == Group::own ? POSIX_SPAWN_SETPGROUP : 0;
    ::posix_spawnattr_setflags(
        &attributes_,
        static_cast<short>(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | own_group));
}

ChildAttributes::~ChildAttributes() {
    ::posix_spawnattr_destroy(&attributes_);
}

int wait_for_child(pid_t child) {
    int status = 0;
    pid_t ended = -1;
    while ((ended = ::waitpid(child, &status, 0)) < 0 && errno == EINTR) {
    }
    if (ended != child) {
        return -1;
    }
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

std::optional<std::string> output_of(std::vector<std::string> const& words, double limit_s) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
        return std::nullopt;
    }
    pid_t const child = start(words, ends[1]);
    ::close(ends[1]);
    Stopwatch const watch;
    std::string text;
    bool const told = child > 0 && read_all(ends[0], limit_s, text);
    ::close(ends[0]);
    if (child <= 0) {
        return std::nullopt;
    }
    // Having nothing more to say is not yet the end.
    auto const status = told ? status_of(child, limit_s - watch.seconds()) : std::nullopt;
    if (!status) {
        ::kill(-child, SIGKILL); // with those that it started
        status_of(child, last_wait_s);
    }
    bool const well = status && WIFEXITED(*status) && WEXITSTATUS(*status) == 0;
    return well ? std::optional(text) : std::nullopt;
}

} // namespace lockstep
