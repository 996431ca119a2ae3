#include "process.hpp"

#include "base/child.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/base/signals.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace lockstep::launch {

namespace {

void write_all(int descriptor, std::string_view text) {
    while (!text.empty()) {
        auto const put = ::write(descriptor, text.data(), text.size());
        if (put < 0 && errno != EINTR) {
            return; // nobody reads it any more
        }
        text.remove_prefix(put > 0 ? static_cast<std::size_t>(put) : 0);
    }
}

/// The child's part between fork and exec; it returns when the program cannot be started.
void become(std::vector<char*> const& words, pid_t parent, int errors) {
    ::setpgid(0, 0);
    reset_signals();
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) { // it died before that could be noticed
        return;
    }
    int const nothing = ::open("/dev/null", O_RDONLY);
    ::dup2(nothing, STDIN_FILENO); // a group in the background may not read the terminal
    ::dup2(errors, STDERR_FILENO);
    ::execvp(words[0], words.data());
    auto const why = system_text(errno);
    std::array<std::string_view, 5> const parts{"lockstep: cannot start ", words[0], ": ", why,
                                                ". Load your MPI module, or correct --launcher\n"};
    for (auto const part : parts) {
        write_all(STDERR_FILENO, part);
    }
}

} // namespace

LauncherProcess::LauncherProcess(std::vector<std::string> const& words, Listener listener)
    : listener_(std::move(listener)) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
        throw system_error("cannot make a pipe", errno,
                           "Raise the limit on open files (ulimit -n)");
    }
    Descriptor const theirs(ends[1]);
    Descriptor ours(ends[0]);
    auto const arguments = word_pointers(words);
    pid_t const parent = ::getpid();
    child_ = ::fork();
    if (child_ < 0) {
        throw system_error(concat("cannot start ", words[0]), errno,
                           "End some processes, or raise the limit on processes (ulimit -u)");
    }
    if (child_ == 0) {
        become(arguments, parent, theirs.get());
        ::_exit(static_cast<int>(ExitCode::unavailable));
    }
    ::fcntl(ours.get(), F_SETFL, O_NONBLOCK);
    errors_.emplace(std::move(ours));
}

std::optional<int> LauncherProcess::wait(double seconds) {
    pass_on(seconds);
    int status = 0;
    pid_t const ended = ::waitpid(child_, &status, WNOHANG);
    if (ended == 0 || (ended < 0 && errno == EINTR)) {
        return std::nullopt;
    }
    while (pass_on(0)) { // its last words; who still holds the pipe is not waited for
    }
    if (ended < 0) {
        return static_cast<int>(ExitCode::rank_lost);
    }
    was_killed_ = WIFSIGNALED(status);
    return was_killed_ ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/// Whether anything came.
bool LauncherProcess::pass_on(double seconds) {
    std::array<char, 8192> part{};
    pollfd ready{.fd = silent_ ? -1 : errors_->get(), .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, static_cast<int>(1e3 * seconds)) <= 0) {
        return false;
    }
    auto const got = ::read(errors_->get(), part.data(), part.size());
    if (got <= 0) {
        silent_ = got == 0 || (errno != EAGAIN && errno != EINTR);
        return false;
    }
    std::string_view const text(part.data(), static_cast<std::size_t>(got));
    write_all(STDERR_FILENO, text);
    listener_(text);
    return true;
}

void LauncherProcess::signal(int number) const {
    ::kill(child_, number);
}

void LauncherProcess::kill_all() const {
    ::kill(-child_, SIGKILL);
}

} // namespace lockstep::launch
