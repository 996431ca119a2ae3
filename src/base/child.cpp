#include "lockstep/base/child.hpp"

#include "lockstep/base/clock.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace lockstep {

namespace {

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
        if (got > 0) {
            text.append(part.data(), static_cast<std::size_t>(got));
        } else if (errno != EINTR) {
            return false;
        }
    }
}

/// Starts a program with its standard output in `output`; -1 when there is no such program.
pid_t start(std::vector<std::string> const& words, int output) {
    std::vector<char*> arguments;
    for (auto const& word : words) {
        arguments.push_back(const_cast<char*>(word.c_str()));
    }
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    pid_t child = -1;
    ChildAttributes const attributes;
    int const failed =
        ::posix_spawnp(&child, arguments[0], &actions, attributes.get(), arguments.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    return failed == 0 ? child : -1;
}

} // namespace

ChildAttributes::ChildAttributes() {
    sigset_t defaults;
    sigset_t none;
    ::sigfillset(&defaults);
    ::sigdelset(&defaults, SIGHUP);
    ::sigemptyset(&none);
    ::posix_spawnattr_init(&attributes_);
    ::posix_spawnattr_setsigdefault(&attributes_, &defaults);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
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
    std::string text;
    bool const in_time = child > 0 && read_all(ends[0], limit_s, text);
    ::close(ends[0]);
    if (child <= 0) {
        return std::nullopt;
    }
    if (!in_time) {
        ::kill(child, SIGKILL);
    }
    bool const well = wait_for_child(child) == 0 && in_time;
    return well ? std::optional(text) : std::nullopt;
}

} // namespace lockstep
