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
    std::int64_t step = -1; ///< -1: any
    std::string phase;      ///< empty: at the beginning of a step
};

Fault parse(std::string const& text) {
    Fault fault;
    for (auto const& part : split(text, ':')) {
        if (part == "rank=all") {
            fault.rank = every_rank;
        } else if (part.starts_with("rank=")) {
            fault.rank = std::atoll(part.c_str() + 5);
        } else if (part.starts_with("step=")) {
            fault.step = std::atoll(part.c_str() + 5);
        } else if (part.starts_with("phase=")) {
            fault.phase = part.substr(6);
        } else {
            fault.kind = part;
        }
    }
    return fault;
}

bool hits(Fault const& fault, int rank) {
    return fault.rank == rank || fault.rank == every_rank;
}

Damage commit(Fault const& fault, char const* text) {
    if (fault.kind == "kill") {
        std::raise(SIGKILL);
    } else if (fault.kind == "stop") {
        std::raise(SIGSTOP);
    } else if (fault.kind == "throw") {
        throw Error(ExitCode::software, {"an injected fault", text, "Unset LOCKSTEP_INJECT"});
    } else if (fault.kind == "nan") {
        return Damage::nan;
    } else if (fault.kind == "bitflip") {
        return Damage::bit_flip;
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
                     "expected kill, stop, throw, hang, nan, bitflip, slow or oom, with "
                     ":rank=R:step=S or :rank=R:phase=P",
                     "Correct or unset it"});
    }
    return Damage::none;
}

} // namespace

Damage inject_fault(int rank, std::int64_t step) {
    char const* const text = std::getenv("LOCKSTEP_INJECT");
    if (text == nullptr || *text == '\0') {
        return Damage::none;
    }
    auto const fault = parse(text);
    bool const every_step = fault.kind == "slow" && fault.step < 0;
    if (!hits(fault, rank) || !fault.phase.empty() || (fault.step != step && !every_step)) {
        return Damage::none;
    }
    return commit(fault, text);
}

void inject_fault_in(int rank, std::string_view phase, std::int64_t step, Names names) {
    char const* const text = std::getenv("LOCKSTEP_INJECT");
    if (text == nullptr || *text == '\0') {
        return;
    }
    auto const fault = parse(text);
    if (hits(fault, rank) && !fault.phase.empty() &&
        (names == Names::whole ? phase == fault.phase
                               : phase.find(fault.phase) != std::string_view::npos) &&
        (fault.step < 0 || fault.step == step)) {
        commit(fault, text);
    }
}

} // namespace lockstep
