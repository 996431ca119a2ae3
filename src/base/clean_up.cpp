#include "base/clean_up.hpp"

#include "base/signals_blocked.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <mutex>
#include <ranges>
#include <sys/eventfd.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace lockstep {

namespace {

constexpr std::array ends{SIGTERM, SIGINT, SIGHUP};

// A handler may touch only lock-free static storage.
volatile std::sig_atomic_t came = 0;
volatile std::sig_atomic_t wake = -1; ///< an eventfd
std::atomic<pid_t> owner = 0;         ///< the process that waits for it; a fork is another one

void note_end(int number) {
    if (owner != ::getpid()) {
        static_cast<void>(std::signal(number, SIG_DFL));
        static_cast<void>(std::raise(number));
        return;
    }
    if (came != 0 && number == SIGTERM) {
        return; // a launcher sends it more than once, and kills in the end
    }
    if (came != 0) {
        static_cast<void>(std::signal(number, SIG_DFL));
        static_cast<void>(std::raise(number));
    }
    came = number;
    std::uint64_t const one = 1;
    static_cast<void>(!::write(wake, &one, sizeof(one)));
}

void take_over(int number, void (*from)(int), void (*to)(int)) {
    struct sigaction action {};
    if (::sigaction(number, nullptr, &action) == 0 && action.sa_handler == from) {
        action = {};
        action.sa_handler = to;
        action.sa_flags = SA_RESTART;
        sigemptyset(&action.sa_mask);
        ::sigaction(number, &action, nullptr);
    }
}

/// What exists in this process.
struct All {
    std::mutex mutex;
    std::vector<std::function<void()> const*> undo;
};

All& all() {
    static All one;
    return one;
}

void await_end() {
    std::uint64_t count = 0;
    while (::read(wake, &count, sizeof(count)) < 0 && errno == EINTR) {
    }
    std::scoped_lock const lock(all().mutex); // kept to the end
    for (auto const* const undo : std::views::reverse(all().undo)) {
        (*undo)();
    }
    int const number = came;
    static_cast<void>(std::signal(number, SIG_DFL));
    sigset_t none;
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, nullptr);
    ::kill(::getpid(), number);
    ::_exit(128 + number);
}

} // namespace

CleanUp::CleanUp(std::function<void()> undo) : undo_(std::move(undo)) {
    std::scoped_lock const lock(all().mutex);
    if (owner != ::getpid()) {
        all().undo.clear(); // what a fork has inherited is its parent's
        wake = -1;
        owner = ::getpid();
    }
    all().undo.push_back(&undo_);
    if (wake < 0) {
        wake = ::eventfd(0, EFD_CLOEXEC);
        if (wake < 0) {
            return; // out of descriptors: a signal ends the process at once
        }
        SignalsBlocked const blocked;    // the thread runs no handler
        std::thread(await_end).detach(); // it waits until this process ends
    }
    for (int const number : ends) {
        take_over(number, SIG_DFL, note_end);
    }
}

CleanUp::~CleanUp() {
    std::scoped_lock const lock(all().mutex);
    std::erase(all().undo, &undo_);
    if (!all().undo.empty()) {
        return;
    }
    for (int const number : ends) {
        take_over(number, note_end, SIG_DFL);
    }
}

bool CleanUp::is_under_way() noexcept {
    return came != 0;
}

void remove_tree(std::filesystem::path const& path) noexcept {
    constexpr int attempts = 20; // others may still make files there
    std::error_code failure;
    for (int attempt = 0; attempt < attempts; ++attempt) {
        std::filesystem::remove_all(path, failure);
        if (!failure) {
            return;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
}

} // namespace lockstep
