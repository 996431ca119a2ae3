#include "lockstep/base/signals.hpp"

#include "base/process_calls.hpp"
#include "base/signal_sender.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <unistd.h>
#include <utility>
#include <vector>

namespace lockstep {

namespace {

// A handler may touch only lock-free static storage.
volatile std::sig_atomic_t pending_signal = 0;
volatile std::sig_atomic_t pending_sender = 0;
volatile std::sig_atomic_t others_asked = 0;
volatile std::sig_atomic_t interrupted = 0;

int objects = 0;

constexpr std::array<int, 5> requests{SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU, SIGINT};

struct Former {
    int number;
    struct sigaction action;
};

std::vector<Former> former; ///< what the signals meant before the first object

void note_signal(int number, siginfo_t* details, void* /*context*/) {
    if (number == SIGINT && interrupted != 0) {
        static_cast<void>(std::signal(SIGINT, SIG_DFL));
        static_cast<void>(std::raise(SIGINT));
    }
    interrupted = number == SIGINT ? 1 : interrupted;
    others_asked = others_asked != 0 || details->si_pid != ::getppid() ? 1 : 0;
    pending_sender = details->si_pid;
    pending_signal = number;
}

void install_noting(int number) {
    struct sigaction action {};
    struct sigaction before {};
    action.sa_sigaction = note_signal;
    action.sa_flags = SA_RESTART | SA_SIGINFO;
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, &before);
    former.push_back({number, before});
}

void install(int number, void (*handler)(int)) {
    struct sigaction action {};
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, nullptr);
}

bool is_ignored(int number) {
    struct sigaction action {};
    return sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

} // namespace

SignalRequests::SignalRequests(Hangup hangup) {
    if (objects++ > 0) {
        return;
    }
    pending_signal = 0;
    others_asked = 0;
    interrupted = 0;
    for (int const number : requests) {
        install_noting(number);
    }
    if (hangup == Hangup::request && !is_ignored(SIGHUP)) {
        install_noting(SIGHUP);
    }
}

SignalRequests::~SignalRequests() {
    if (--objects > 0) {
        return;
    }
    auto const before = std::exchange(former, {});
    if (process_calls() == nullptr) {
        for (auto const& [number, action] : before) {
            sigaction(number, &action, nullptr);
        }
        return;
    }
    // A request that is repeated while the process leaves, its checkpoint written, must not kill
    // it.
    for (int const number : requests) {
        bool const kills = number == SIGINT || number == SIGTERM;
        install(number, kills ? SIG_DFL : SIG_IGN);
    }
}

int SignalRequests::pending() noexcept {
    return pending_signal;
}

int signal_sender() noexcept {
    return pending_sender;
}

bool others_have_asked() noexcept {
    return others_asked != 0;
}

void reset_signals() noexcept {
    constexpr std::array on_purpose{SIGHUP, SIGINT, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU};
    for (int number = 1; number < NSIG; ++number) {
        if (std::find(on_purpose.begin(), on_purpose.end(), number) == on_purpose.end() &&
            is_ignored(number)) {
            static_cast<void>(std::signal(number, SIG_DFL));
        }
    }
    sigset_t none;
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, nullptr);
}

std::string signal_name(int number) {
    if (number == walltime_over || number == job_too_short) {
        return "walltime";
    }
    char const* const name = sigabbrev_np(number == ended_by_launcher ? SIGTERM : number);
    return name == nullptr ? "signal " + std::to_string(number) : std::string("SIG") + name;
}

} // namespace lockstep
