#include "lockstep/base/inject.hpp"

#include "lockstep/base/error.hpp"
#include "lockstep/base/text.hpp"

#include <csignal>
#include <cstdlib>
#include <new>
#include <string>
#include <unistd.h>

namespace lockstep {

namespace {

constexpr std::int64_t every_rank = -1;

struct Fault {
    std::string kind;
    std::int64_t rank = 0;
    std::int64_t step = 0;
    std::string phase; ///< empty: in a training step
};

Fault parse(std::string const& text) {
    Fault fault;
    for (auto const& part : split(text, ':')) {
        if (part == "rank=all") {
            fault.rank = every_rank;
        } else if (part.starts_with("phase=")) {
            fault.phase = part.substr(6);
        } else if (part.starts_with("rank=")) {
            fault.rank = std::atoll(part.c_str() + 5);
        } else if (part.starts_with("step=")) {
            fault.step = std::atoll(part.c_str() + 5);
        } else {
            fault.kind = part;
        }
    }
    return fault;
}

bool hits(Fault const& fault, int rank) {
    return fault.rank == rank || fault.rank == every_rank;
}

/// Whether the gradient is to become NaN.
bool strike(Fault const& fault, char const* text) {
    if (fault.kind == "kill") {
        std::raise(SIGKILL);
    } else if (fault.kind == "throw") {
        throw Error(ExitCode::software, {"an injected fault", text, "Unset LOCKSTEP_INJECT"});
    } else if (fault.kind == "nan") {
        return true;
    } else if (fault.kind == "slow") {
        ::usleep(100'000);
    } else if (fault.kind == "oom") {
        throw std::bad_alloc();
    } else if (fault.kind == "hang") {
        while (true) {
            ::sleep(1);
        }
    } else {
        throw Error(ExitCode::usage,
                    {concat("LOCKSTEP_INJECT = ", text),
                     "expected kill, throw, hang, nan, slow or oom, with :rank=R:step=S",
                     "Correct or unset it"});
    }
    return false;
}

} // namespace

bool inject_fault(int rank, std::int64_t step) {
    char const* const text = std::getenv("LOCKSTEP_INJECT");
    if (text == nullptr || *text == '\0') {
        return false;
    }
    auto const fault = parse(text);
    bool const now = fault.step == step || fault.kind == "slow";
    return fault.phase.empty() && hits(fault, rank) && now && strike(fault, text);
}

void inject_fault_in_phase(int rank, std::string_view phase, std::int64_t step) {
    char const* const text = std::getenv("LOCKSTEP_INJECT");
    if (text == nullptr || *text == '\0') {
        return;
    }
    auto const fault = parse(text);
    if (fault.phase == phase && hits(fault, rank) && fault.step == step) {
        strike(fault, text);
    }
}

} // namespace lockstep
