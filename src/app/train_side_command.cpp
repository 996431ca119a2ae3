#include "app/command.hpp"
#include "base/build_id.hpp"
#include "base/environment.hpp"
#include "base/loader_reason.hpp"
#include "base/memory.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/base/signals.hpp"
#include "lockstep/build_id_value.hpp"

#include <csignal>
#include <cstdint>
#include <dlfcn.h>

#include "commands.hpp"

namespace lockstep::app {

namespace {

constexpr char const* train_library = LOCKSTEP_TRAIN_LIBRARY;

/// LibTorch and MPI begin with less; with much less they crash where they begin.
constexpr std::uint64_t min_address_space = std::uint64_t{1} << 30;

void require_address_space() {
    if (auto const left = address_space_left(); left < min_address_space) {
        throw Error(ExitCode::memory,
                    {"out of memory",
                     concat("only ", bytes_text(left),
                            " of address space is left, and LibTorch and MPI need ",
                            bytes_text(min_address_space)),
                     "Raise or remove the limit on address space (ulimit -v)"});
    }
}

} // namespace

ExitCode train_side_command(std::string const& name, Invocation const& invocation) {
    require_address_space();
    // Kineto writes to standard error when it starts and stops.
    set_environment("KINETO_LOG_LEVEL", "6");
    // Beside the program in a build, in ../lib when it is installed; found through the run path.
    // Lazy for LibTorch's tens of thousands of calls within itself, which take a seventh of the
    // start to bind; the library's own calls are bound at once by its link option.
    void* const library = ::dlopen(train_library, RTLD_LAZY | RTLD_GLOBAL);
    if (library == nullptr) {
        throw Error(ExitCode::unavailable,
                    {concat("cannot load ", train_library), loader_reason(),
                     "Build the program again, or check that LibTorch is still installed"});
    }
    auto const* const trainer =
        static_cast<char const* const*>(::dlsym(library, "lockstep_trainer_build_id"));
    require_same_build(train_library, trainer == nullptr ? "missing" : *trainer, LOCKSTEP_BUILD_ID);
    using Entry = int (*)(char const*, Invocation const*);
    auto const entry = reinterpret_cast<Entry>(::dlsym(library, "lockstep_train_side"));
    if (entry == nullptr) {
        throw Error(ExitCode::unavailable,
                    {concat(train_library, " does not match this program"), loader_reason(),
                     "Build the program and its libraries again"});
    }
    return static_cast<ExitCode>(entry(name.c_str(), &invocation));
}

void outlive_listeners() {
    static_cast<void>(std::signal(SIGPIPE, SIG_IGN));
    static_cast<void>(std::signal(SIGHUP, SIG_IGN));
}

ExitCode train_front_command(Invocation const& invocation) {
    SignalRequests const signals;
    outlive_listeners();
    return train_side_command("train", invocation);
}

} // namespace lockstep::app
