#include "base/inject.hpp"

#include "base/environment.hpp"
#include "base/host_facts.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <csignal>
#include <new>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>

namespace lockstep {

namespace {

constexpr std::int64_t every_rank = -1;

constexpr std::array<std::pair<std::string_view, DiskFault>, 4> disk_faults{
    {{"disk-full", DiskFault::full},
     {"slow-disk", DiskFault::slow},
     {"torn-checkpoint", DiskFault::torn},
     {"corrupt-checkpoint", DiskFault::corrupt}}};

/// What a fault that is none of the disk's does to its rank.
enum class Deed {
    none,
    kill,
    stop,
    raise,
    hang,
    nan,
    bit_flip,
    gradient_flip,
    wrong_batch,
    slow,
    out_of_memory,
    clock
};

constexpr std::array<std::pair<std::string_view, Deed>, 11> deeds{
    {{"kill", Deed::kill},
     {"stop", Deed::stop},
     {"throw", Deed::raise},
     {"hang", Deed::hang},
     {"nan", Deed::nan},
     {"bitflip", Deed::bit_flip},
     {"gradflip", Deed::gradient_flip},
     {"wrongbatch", Deed::wrong_batch},
     {"slow", Deed::slow},
     {"oom", Deed::out_of_memory},
     {"clock", Deed::clock}}};

/// What the table has under this name; `none` of its kind where it has nothing.
template <class Kind, std::size_t count>
Kind named(std::array<std::pair<std::string_view, Kind>, count> const& table,
           std::string_view name) {
    auto const* const found =
        std::ranges::find(table, name, &std::pair<std::string_view, Kind>::first);
    return found == table.end() ? Kind::none : found->second;
}

struct Fault {
    std::string text;
    DiskFault disk = DiskFault::none;
    Deed deed = Deed::none;
    std::int64_t rank = 0;
    std::string host{};     ///< in place of the rank, from the step on; empty: none
    std::int64_t step = -1; ///< -1: any
    double seconds = 0;     ///< of a clock
    std::string phase;      ///< empty: at the beginning of a step
};

Fault parse(std::string const& text) {
    constexpr std::int64_t none = 0; // of a number that is none
    Fault fault;
    fault.text = text;
    for (auto const& part : split(text, ':')) {
        if (part == "rank=all") {
            fault.rank = every_rank;
        } else if (part.starts_with("rank=")) {
            fault.rank = number_of<std::int64_t>(part.substr(5)).value_or(none);
        } else if (part.starts_with("host=")) {
            fault.host = part.substr(5);
        } else if (part.starts_with("step=")) {
            fault.step = number_of<std::int64_t>(part.substr(5)).value_or(none);
        } else if (part.starts_with("seconds=")) {
            fault.seconds = number_of<double>(part.substr(8)).value_or(none);
        } else if (part.starts_with("phase=")) {
            fault.phase = part.substr(6);
        } else {
            fault.disk = named(disk_faults, part);
            fault.deed = named(deeds, part);
        }
    }
    return fault;
}

/// What LOCKSTEP_INJECT asks of this rank.
std::optional<Fault> asked_of(int rank) {
    auto const text = environment_text("LOCKSTEP_INJECT");
    if (text.empty()) {
        return std::nullopt;
    }
    auto fault = parse(text);
    bool const ours = fault.host.empty() ? fault.rank == rank || fault.rank == every_rank
                                         : is_same_host(fault.host, own_host());
    return ours ? std::optional(std::move(fault)) : std::nullopt;
}

Error unknown(std::string const& text) {
    return {ExitCode::usage,
            {concat("LOCKSTEP_INJECT = ", text),
             "expected kill, stop, throw, hang, slow or oom (each with :rank=R:step=S or "
             ":rank=R:phase=P), nan or bitflip (each with :rank=R:step=S), gradflip or wrongbatch "
             "(each with :rank=R:step=S or :host=H:step=S), clock:rank=R:seconds=S, "
             "or disk-full, slow-disk, torn-checkpoint or corrupt-checkpoint (each with :step=S)",
             "Correct this variable, or unset the variable"}};
}

Damage commit(Fault const& fault) {
    switch (fault.deed) {
    case Deed::none:
        throw unknown(fault.text);
    case Deed::clock:
        break; // of timelines alone
    case Deed::kill:
        static_cast<void>(std::raise(SIGKILL));
        break;
    case Deed::stop:
        static_cast<void>(std::raise(SIGSTOP));
        break;
    case Deed::raise:
        throw Error(ExitCode::software, {"an injected fault", fault.text,
                                         "Unset the environment variable LOCKSTEP_INJECT"});
    case Deed::hang:
        while (true) {
            std::this_thread::sleep_for(std::chrono::seconds(1));
        }
    case Deed::nan:
        return Damage::nan;
    case Deed::bit_flip:
        return Damage::bit_flip;
    case Deed::gradient_flip:
        return fault.host.empty() ? Damage::gradient_flip : Damage::gradient_flips;
    case Deed::wrong_batch:
        return Damage::wrong_batch;
    case Deed::slow:
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        break;
    case Deed::out_of_memory:
        throw std::bad_alloc();
    }
    return Damage::none;
}

/// Whether what follows `name` in a part of the text is the number of a rank or step.
bool is_numbered(std::string const& part, std::string_view name) {
    return part.starts_with(name) &&
           number_of<std::int64_t>(part.substr(name.size())).value_or(-1) >= 0;
}

/// Whether the text says when the fault occurs, or how large it is, where it would else never
/// occur.
bool can_occur(Fault const& fault) {
    bool const of_hosts = fault.deed == Deed::gradient_flip || fault.deed == Deed::wrong_batch;
    if (!fault.host.empty() && !of_hosts) {
        return false;
    }
    switch (fault.deed) {
    case Deed::none: // the disk's
    case Deed::slow:
        return true;
    case Deed::clock:
        return std::isfinite(fault.seconds) && fault.seconds != 0;
    case Deed::nan:
    case Deed::bit_flip:
    case Deed::gradient_flip:
    case Deed::wrong_batch:
        return fault.step >= 0 && fault.phase.empty();
    default:
        return fault.step >= 0 || !fault.phase.empty();
    }
}

} // namespace

void require_known_fault() {
    auto const text = environment_text("LOCKSTEP_INJECT");
    if (text.empty()) {
        return;
    }
    auto const fault = parse(text);
    int words = 0;
    auto const parts = split(text, ':');
    std::set<std::string> names; // fewer than parts: something is said twice
    for (auto const& part : parts) {
        names.insert(part.substr(0, part.find('=')));
        bool const names_place =
            part == "rank=all" || is_numbered(part, "rank=") || is_numbered(part, "step=") ||
            part.starts_with("phase=") || part.starts_with("host=") ||
            (part.starts_with("seconds=") && number_of<double>(part.substr(8)));
        words += names_place ? 0 : 1;
    }
    if ((fault.disk == DiskFault::none && fault.deed == Deed::none) || words != 1 ||
        names.size() < parts.size() || (names.contains("rank") && names.contains("host")) ||
        !can_occur(fault)) {
        throw unknown(text);
    }
}

Damage inject_fault(int rank, std::int64_t step) {
    auto const fault = asked_of(rank);
    if (!fault || fault->disk != DiskFault::none || !fault->phase.empty()) {
        return Damage::none;
    }
    bool const every_step = fault->deed == Deed::slow && fault->step < 0;
    bool const since = !fault->host.empty() && fault->step <= step;
    return fault->step == step || every_step || since ? commit(*fault) : Damage::none;
}

void inject_fault_in(int rank, std::string_view phase, std::int64_t step, Names names) {
    auto const fault = asked_of(rank);
    if (fault && !fault->phase.empty() &&
        (names == Names::whole ? phase == fault->phase
                               : phase.find(fault->phase) != std::string_view::npos) &&
        (fault->step < 0 || fault->step == step)) {
        commit(*fault);
    }
}

bool injects_nan() {
    return parse(environment_text("LOCKSTEP_INJECT")).deed == Deed::nan;
}

double injected_clock_skew(int rank) {
    constexpr double longest_s = 1e6;
    auto const fault = asked_of(rank);
    return fault && fault->deed == Deed::clock ? std::clamp(fault->seconds, -longest_s, longest_s)
                                               : 0;
}

DiskFault inject_disk_fault(int rank, std::int64_t step) {
    auto const fault = asked_of(rank);
    return fault && (fault->step < 0 || fault->step == step) ? fault->disk : DiskFault::none;
}

} // namespace lockstep
