#include "start_failure.hpp"

#include "base/arrival.hpp"
#include "base/host_facts.hpp"
#include "base/memory.hpp"
#include "base/text.hpp"

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace lockstep::monitor {

namespace {

// With less than this MPI does not start; with this it does.
constexpr std::uint64_t few_files = 64;
constexpr std::uint64_t small_stack = std::uint64_t{512} << 10;
constexpr std::uint64_t small_file = std::uint64_t{16} << 20; ///< its ranks' shared memory is files
constexpr std::uint64_t little_memory = std::uint64_t{256} << 20;

struct Watched {
    std::atomic<RootCause*> root_cause{nullptr};
    std::atomic<pid_t> process{0}; ///< MPI forks: what its children do is not our end
};

/// What _exit finds has no other way to it.
Watched& watched() {
    static Watched one;
    return one;
}

/// The limit, where it is less than `min`.
std::optional<std::uint64_t> less_than(std::uint64_t min, decltype(RLIMIT_AS) resource) {
    rlimit limit{};
    bool const small = ::getrlimit(resource, &limit) == 0 && limit.rlim_cur < min;
    return small ? std::optional<std::uint64_t>(limit.rlim_cur) : std::nullopt;
}

void tell_start_failure(RootCause& root_cause, ExitCode& code) noexcept {
    try {
        release_reserve();
        auto const error = why_mpi_did_not_start();
        code = error.code();
        root_cause.tell(launched_ranks() < 2
                            ? std::string()
                            : concat("rank ", launched_rank(), " (", own_host(), ") in start-up"),
                        error);
    } catch (...) {
        // Open MPI has said something.
    }
}

} // namespace

Error why_mpi_did_not_start() {
    std::string const what = "MPI did not start";
    if (auto const files = less_than(few_files, RLIMIT_NOFILE)) {
        return {ExitCode::io,
                {what, concat("this process may have only ", *files, " files open"),
                 "Raise the limit on open files (ulimit -n)"}};
    }
    if (auto const bytes = less_than(small_file, RLIMIT_FSIZE)) {
        return {ExitCode::io,
                {what, concat("this process may write files of at most ", bytes_text(*bytes)),
                 "Raise or remove the limit on file sizes (ulimit -f)"}};
    }
    if (auto const bytes = less_than(small_stack, RLIMIT_STACK)) {
        return {ExitCode::memory,
                {what, concat("the stack of this process is limited to ", bytes_text(*bytes)),
                 "Raise the limit on the stack (ulimit -s)"}};
    }
    if (auto const bytes = memory_left_at_peak(); bytes < little_memory) {
        return {ExitCode::memory,
                {what, concat("only ", bytes_text(bytes), " of memory was left for this process"),
                 "Ask for more memory, or raise the limits of this process (ulimit -d, -v)"}};
    }
    return {ExitCode::unavailable,
            {what, "Open MPI's messages above say why",
             "Check the launcher, that PATH finds the Open MPI that this program was built with, "
             "and that OPAL_PREFIX, if it is set, names that Open MPI's directory"}};
}

StartFailure::StartFailure(RootCause& root_cause) {
    watched().process = ::getpid();
    watched().root_cause = &root_cause;
}

StartFailure::~StartFailure() {
    watched().root_cause = nullptr;
}

} // namespace lockstep::monitor

/// In place of the C library's, whose task it does, too.
extern "C" [[noreturn]] void _exit(int status) { // NOLINT(bugprone-reserved-identifier)
    using namespace lockstep;
    auto& watched = monitor::watched();
    if (watched.process == ::getpid()) {
        if (auto* const root_cause = watched.root_cause.exchange(nullptr)) {
            auto code = ExitCode::unavailable;
            monitor::tell_start_failure(*root_cause, code);
            status = static_cast<int>(code);
        }
    }
    while (true) {
        ::syscall(SYS_exit_group, status);
    }
}
