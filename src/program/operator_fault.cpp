#include "program/operator_fault.hpp"

#include "base/arrival.hpp"
#include "base/process_calls.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <array>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>

namespace lockstep::program {

namespace {

constexpr std::array<int, 4> faults{SIGSEGV, SIGBUS, SIGFPE, SIGABRT};

// A handler reaches only static storage.
thread_local Node const* running = nullptr;
std::array<struct sigaction, faults.size()> before;

/// The beginning of the line, made before any fault.
std::string const& beginning() {
    static std::string const text = concat(
        "lockstep: root cause: ",
        launched_ranks() > 1 ? concat("rank ", launched_rank(), ": ") : std::string(), "operator ");
    return text;
}

void say(std::string_view text) {
    static_cast<void>(!::write(STDERR_FILENO, text.data(), text.size()));
}

void end_by_operator(int number, siginfo_t* information, void*) {
    // Else someone sent it; a process aborts itself when it finds that its heap was overwritten.
    bool const is_fault =
        information->si_code > 0 || (number == SIGABRT && information->si_pid == ::getpid());
    if (running == nullptr || !is_fault) {
        for (std::size_t at = 0; at < faults.size(); ++at) {
            if (faults.at(at) == number) {
                ::sigaction(number, &before.at(at), nullptr);
            }
        }
        if (!is_fault) {
            ::raise(number);
        }
        return; // the fault comes again, to the handler before
    }
    say(beginning());
    say(running->target);
    say(" of the exported program crashed");
    if (!running->origin.empty()) {
        say(" (");
        say(running->origin);
        say(")");
    }
    say(": it does not check the arguments that it was given. The file is damaged, or the "
        "operator has a defect. Export the model again, without that operator\n");
    std::_Exit(static_cast<int>(ExitCode::data));
}

bool take_over() {
    static_cast<void>(beginning());
    struct sigaction action {};
    action.sa_sigaction = end_by_operator;
    action.sa_flags = SA_SIGINFO;
    sigemptyset(&action.sa_mask);
    for (std::size_t at = 0; at < faults.size(); ++at) {
        ::sigaction(faults.at(at), &action, &before.at(at));
    }
    return true;
}

} // namespace

OperatorScope::OperatorScope(Node const& node) noexcept : outer_(std::exchange(running, &node)) {}

OperatorScope::~OperatorScope() {
    running = outer_;
}

Node const* running_node() noexcept {
    return running;
}

void watch_operators() {
    if (process_calls() != nullptr) {
        static bool const taken = take_over();
        static_cast<void>(taken);
    }
}

} // namespace lockstep::program
