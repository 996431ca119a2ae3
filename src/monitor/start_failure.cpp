#include "monitor/start_failure.hpp"

#include "base/arrival.hpp"
#include "base/environment.hpp"
#include "base/host_facts.hpp"
#include "base/memory.hpp"
#include "base/process_calls.hpp"
#include "base/text.hpp"

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>
#include <sys/resource.h>
#include <unistd.h>
#include <utility>

namespace lockstep::monitor {

namespace {

// With less than this MPI does not start; with this it does.
constexpr std::uint64_t few_files = 64;
constexpr std::uint64_t small_stack = std::uint64_t{512} << 10;
constexpr std::uint64_t small_file = std::uint64_t{16} << 20; ///< its ranks' shared memory is files
constexpr std::uint64_t little_memory = std::uint64_t{256} << 20;
constexpr std::uint64_t files_of_mpirun = 30;
constexpr std::uint64_t files_of_rank = 3;
constexpr char const* raise_files = "Raise the limit on open files (ulimit -n)";

struct Watched {
    std::atomic<RootCause*> root_cause{nullptr};
    std::atomic<pid_t> process{0}; ///< MPI forks: what its children do is not our end
};

/// What a call of _exit finds has no other way to it.
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

/// Where Open MPI makes its files, which it does at every start; and why it cannot: an errno, or 0.
std::pair<std::filesystem::path, int> temporary_directory() {
    std::filesystem::path directory = "/tmp";
    for (char const* const name : {"TMP", "TEMP", "TMPDIR"}) { // the last wins
        if (auto const value = environment_text(name); !value.empty()) {
            directory = value;
        }
    }
    std::error_code failure;
    std::filesystem::create_directories(directory, failure); // as Open MPI does
    if (failure) {
        return {directory, failure.value()};
    }
    auto probe = (directory / "lockstep-XXXXXX").string();
    if (::mkdtemp(probe.data()) == nullptr) {
        return {directory, errno};
    }
    ::rmdir(probe.c_str());
    return {directory, 0};
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

/// The status for the end of a process that MPI ends by _exit.
int status_of_end(int status) {
    if (watched().process == ::getpid()) {
        if (auto* const root_cause = watched().root_cause.exchange(nullptr)) {
            auto code = ExitCode::unavailable;
            tell_start_failure(*root_cause, code);
            return static_cast<int>(code);
        }
    }
    return status;
}

} // namespace

std::optional<Error> what_hinders_mpi() {
    std::string const what = "MPI did not start";
    if (auto const files = less_than(few_files, RLIMIT_NOFILE)) {
        return Error(
            ExitCode::io,
            {what, concat("this process may have only ", *files, " files open"), raise_files});
    }
    if (auto const bytes = less_than(small_file, RLIMIT_FSIZE)) {
        return Error(ExitCode::io,
                     {what, concat("this process may write files of at most ", bytes_text(*bytes)),
                      "Raise or remove the limit on file sizes (ulimit -f)"});
    }
    if (auto const bytes = less_than(small_stack, RLIMIT_STACK)) {
        return Error(ExitCode::memory,
                     {what, concat("the stack of this process is limited to ", bytes_text(*bytes)),
                      "Raise the limit on the stack (ulimit -s)"});
    }
    if (auto const bytes = memory_left_at_peak(); bytes < little_memory) {
        return Error(ExitCode::memory,
                     {what,
                      concat("only ", bytes_text(bytes), " of memory was left for this process"),
                      "Ask for more memory, or raise the limits of this process (ulimit -d, -v)"});
    }
    auto const [directory, failure] = temporary_directory();
    if (failure != 0) {
        bool const full = failure == ENOSPC || failure == EDQUOT;
        return Error(full ? ExitCode::io : ExitCode::cannot_create,
                     {what,
                      concat("no files can be made in the temporary directory ", directory.string(),
                             " (", system_text(failure), ")"),
                      "Set TMPDIR to a directory that can be written to"});
    }
    return std::nullopt;
}

Error why_mpi_did_not_start() {
    if (auto const hindrance = what_hinders_mpi()) {
        return *hindrance;
    }
    return {ExitCode::unavailable,
            {"MPI did not start", "Open MPI's messages above say why",
             "Check the launcher, that PATH finds the Open MPI that this program was built with, "
             "and that OPAL_PREFIX, if it is set, names that Open MPI's directory"}};
}

void require_files_for_mpirun(int ranks) {
    auto const needed = files_of_mpirun + files_of_rank * static_cast<std::uint64_t>(ranks);
    if (auto const files = less_than(needed, RLIMIT_NOFILE)) {
        throw Error(ExitCode::io,
                    {"the ranks cannot be started",
                     concat("this process may have only ", *files, " files open, and mpirun needs ",
                            needed, " for ", amount_of(ranks, "rank")),
                     raise_files});
    }
}

void require_launcher_streams() {
    auto const stream = [](char const* number) {
        std::error_code unknown; // a launcher of another user, or none
        return std::filesystem::read_symlink(concat("/proc/", ::getppid(), "/fd/", number), unknown)
            .string();
    };
    if (auto const input = stream("0");
        launched_ranks() > 1 && input.starts_with("pipe:") && input == stream("1")) {
        throw Error(ExitCode::unavailable,
                    {"mpirun was started with standard input and standard output closed",
                     "a pipe of its own has taken their place, and what passes there reaches the "
                     "ranks as signals",
                     "Start it with </dev/null and >FILE, or use lockstep launch"});
    }
}

StartFailure::StartFailure(RootCause& root_cause) {
    watched().process = ::getpid();
    watched().root_cause = &root_cause;
    before_exit() = status_of_end;
}

StartFailure::~StartFailure() {
    watched().root_cause = nullptr;
}

} // namespace lockstep::monitor
