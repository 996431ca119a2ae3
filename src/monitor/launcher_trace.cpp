#include "launcher_trace.hpp"

#include "base/host_facts.hpp"
#include "base/process.hpp"
#include "base/signal_sender.hpp"
#include "base/text.hpp"
#include "lockstep/base/signals.hpp"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <poll.h>
#include <sstream>
#include <sys/syscall.h>
#include <unistd.h>

namespace lockstep::monitor {

namespace {

std::string content_of(std::filesystem::path const& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<int> children_of(int process) {
    std::vector<int> children;
    std::error_code none;
    for (auto const& thread :
         std::filesystem::directory_iterator(concat("/proc/", process, "/task"), none)) {
        std::istringstream numbers(content_of(thread.path() / "children"));
        children.insert(children.end(), std::istream_iterator<int>(numbers), {});
    }
    return children;
}

/// "node7" or "user@node7".
bool is_name_of(std::string_view word, std::string const& host) {
    return is_same_host(word.substr(word.find('@') + 1), host); // 0 where there is none
}

} // namespace

std::string launcher_silence(int parent) {
    auto const name = content_of(concat("/proc/", parent, "/comm"));
    return is_stopped(parent)
               ? concat(trimmed(name), " (process ", parent, " of ", own_host(),
                        ") is stopped (SIGSTOP)")
               : std::string("the launcher, or its daemon on a host, does not answer");
}

LauncherTrace::LauncherTrace(std::vector<std::vector<std::string>> const& hosts)
    : parent_(::getppid()) {
    if (hosts.size() < 2) {
        return;
    }
    for (int const child : children_of(parent_)) {
        // What it runs comes behind the host, and may name others.
        auto words = split(content_of(concat("/proc/", child, "/cmdline")), '\0');
        std::optional<std::size_t> found;
        for (auto const& word : words) {
            for (std::size_t host = 0; host < hosts.size() && !found; ++host) {
                if (std::ranges::any_of(hosts[host],
                                        [&](auto const& name) { return is_name_of(word, name); })) {
                    found = host;
                }
            }
        }
        if (found && child != ::getpid()) {
            sessions_.push_back(
                {*found, Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)))});
        }
    }
}

std::string LauncherTrace::silence() const {
    return launcher_silence(parent_);
}

bool LauncherTrace::daemon_has_ended() const noexcept {
    return ::getppid() != parent_;
}

bool LauncherTrace::has_asked_to_end() noexcept {
    asked_ = asked_ || (SignalRequests::pending() == SIGTERM && signal_sender() == parent_);
    return asked_;
}

std::optional<std::size_t> LauncherTrace::ended_session() {
    if (one_has_ended_) {
        return first_ended_;
    }
    for (auto const& session : sessions_) {
        pollfd state{session.process.get(), POLLIN, 0};
        if (session.process.is_open() && ::poll(&state, 1, 0) > 0) {
            // Of several at one look, none is known to be the first.
            first_ended_ = one_has_ended_ ? std::nullopt : std::optional(session.host);
            one_has_ended_ = true;
        }
    }
    return first_ended_;
}

std::vector<int> LauncherTrace::running_sessions() const {
    std::vector<int> running;
    for (auto const& session : sessions_) {
        if (!one_has_ended_ && session.process.is_open()) {
            running.push_back(session.process.get());
        }
    }
    return running;
}

} // namespace lockstep::monitor
