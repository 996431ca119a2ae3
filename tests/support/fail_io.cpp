// Preloaded into lockstep, this counts what the program, HDF5 and MPI-IO ask of the system for
// files below the directories LOCKSTEP_FAIL_UNDER (with ':' between them), and the programs that it
// starts, and makes the call of number LOCKSTEP_FAIL_CALL go wrong:
//
//   LOCKSTEP_FAIL_HOW   hang, short (half of it is read or written), or an errno by name
//   LOCKSTEP_FAIL_RANK  on this rank alone; without it, on every one
//   LOCKSTEP_FAIL_LOG   a line for each call of that rank: number, function, path
//
// Calls are those of the dynamic linker: what glibc calls within itself is not seen.

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <mutex>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

namespace {

template <class Function>
Function* next(char const* name) {
    return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

std::string_view setting(char const* name) {
    char const* const value = std::getenv(name);
    return value == nullptr ? std::string_view() : std::string_view(value);
}

/// Whether this process is one to count.
bool is_ours() {
    static bool const ours = [] {
        auto const rank = setting("LOCKSTEP_FAIL_RANK");
        return std::string_view(program_invocation_short_name) == "lockstep" &&
               (rank.empty() || rank == setting("OMPI_COMM_WORLD_RANK"));
    }();
    return ours;
}

bool is_watched(std::string const& path) {
    auto under = setting("LOCKSTEP_FAIL_UNDER");
    while (!under.empty()) {
        auto const each = under.substr(0, under.find(':'));
        if (!each.empty() && path.compare(0, each.size(), each) == 0) {
            return true;
        }
        under.remove_prefix(std::min(each.size() + 1, under.size()));
    }
    return false;
}

std::string path_of(int descriptor) {
    std::array<char, 4096> path{};
    auto const link = "/proc/self/fd/" + std::to_string(descriptor);
    return ::readlink(link.c_str(), path.data(), path.size() - 1) < 0 ? "" : path.data();
}

std::string absolute(char const* path) {
    if (path == nullptr || *path == '/') {
        return path == nullptr ? "" : path;
    }
    std::array<char, 4096> here{};
    return std::string(::getcwd(here.data(), here.size()) == nullptr ? "" : here.data()) + "/" +
           path;
}

void log(std::string const& line) {
    auto const path = setting("LOCKSTEP_FAIL_LOG");
    if (path.empty()) {
        return;
    }
    static auto* const open = next<int(char const*, int, ...)>("open");
    static auto* const write = next<ssize_t(int, void const*, size_t)>("write");
    static auto* const close = next<int(int)>("close");
    int const file = open(path.data(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    [[maybe_unused]] auto const done = write(file, line.data(), line.size());
    close(file);
}

enum class Way { right, wrong, part };

/// Counts a call; what is to become of it. `errno` is set where it is to fail.
Way counted(char const* function, std::string const& path, bool can_be_short = false) {
    static std::atomic<long> calls{0};
    static long const chosen = std::atol(std::string(setting("LOCKSTEP_FAIL_CALL")).c_str());
    long const number = ++calls;
    int const kept = errno;
    auto const how = setting("LOCKSTEP_FAIL_HOW");
    bool const now = number == chosen;
    log(std::to_string(number) + " " + function + " " + path + (now ? " " + std::string(how) : "") +
        "\n");
    errno = kept;
    if (!now) {
        return Way::right;
    }
    if (how == "hang") {
        while (true) {
            ::pause();
        }
    }
    if (how == "short") {
        return can_be_short ? Way::part : Way::right;
    }
    constexpr std::array<std::pair<std::string_view, int>, 8> numbers{{{"EIO", EIO},
                                                                       {"ENOSPC", ENOSPC},
                                                                       {"EDQUOT", EDQUOT},
                                                                       {"EMFILE", EMFILE},
                                                                       {"ENOENT", ENOENT},
                                                                       {"EACCES", EACCES},
                                                                       {"EINTR", EINTR},
                                                                       {"ENOMEM", ENOMEM}}};
    for (auto const& [name, value] : numbers) {
        if (how == name) {
            errno = value;
            return Way::wrong;
        }
    }
    return Way::right;
}

Way of_path(char const* function, char const* path) {
    if (!is_ours()) {
        return Way::right;
    }
    auto const whole = absolute(path);
    return is_watched(whole) ? counted(function, whole) : Way::right;
}

Way of_file(char const* function, int descriptor, bool can_be_short = false) {
    if (!is_ours() || descriptor < 3) {
        return Way::right;
    }
    auto const path = path_of(descriptor);
    return is_watched(path) ? counted(function, path, can_be_short) : Way::right;
}

mode_t mode_of(int flags, va_list rest) {
    return (flags & (O_CREAT | O_TMPFILE)) != 0 ? static_cast<mode_t>(va_arg(rest, int)) : 0;
}

/// The first half of a vector of buffers, at least a byte of it.
ssize_t first_part(iovec const* parts, int count, iovec& half) {
    for (int i = 0; i < count; ++i) {
        if (parts[i].iov_len > 0) {
            half = {parts[i].iov_base, (parts[i].iov_len + 1) / 2};
            return 1;
        }
    }
    return 0;
}

template <class Call>
ssize_t in_part(Way way, size_t bytes, Call const& call) {
    return way == Way::wrong ? -1 : call(way == Way::part ? (bytes + 1) / 2 : bytes);
}

template <class Call>
ssize_t in_part(Way way, iovec const* parts, int count, Call const& call) {
    iovec half{};
    if (way == Way::wrong) {
        return -1;
    }
    if (way == Way::part && first_part(parts, count, half) == 1) {
        return call(&half, 1);
    }
    return call(parts, count);
}

} // namespace

extern "C" {

#define LOCKSTEP_OPEN(NAME)                                                                        \
    int NAME(char const* path, int flags, ...) {                                                   \
        va_list rest;                                                                              \
        va_start(rest, flags);                                                                     \
        auto const mode = mode_of(flags, rest);                                                    \
        va_end(rest);                                                                              \
        static auto* const real = next<int(char const*, int, ...)>(#NAME);                         \
        return of_path(#NAME, path) == Way::wrong ? -1 : real(path, flags, mode);                  \
    }
#define LOCKSTEP_OPENAT(NAME)                                                                      \
    int NAME(int folder, char const* path, int flags, ...) {                                       \
        va_list rest;                                                                              \
        va_start(rest, flags);                                                                     \
        auto const mode = mode_of(flags, rest);                                                    \
        va_end(rest);                                                                              \
        static auto* const real = next<int(int, char const*, int, ...)>(#NAME);                    \
        return of_path(#NAME, path) == Way::wrong ? -1 : real(folder, path, flags, mode);          \
    }
// Calls by name, which fail with -1, and calls by descriptor, likewise.
#define LOCKSTEP_BY_PATH(NAME, PARAMETERS, ARGUMENTS, PATH)                                        \
    int NAME PARAMETERS noexcept {                                                                 \
        static auto* const real = next<int PARAMETERS>(#NAME);                                     \
        return of_path(#NAME, PATH) == Way::wrong ? -1 : real ARGUMENTS;                           \
    }
#define LOCKSTEP_BY_FILE(NAME, PARAMETERS, ARGUMENTS)                                              \
    int NAME PARAMETERS {                                                                          \
        static auto* const real = next<int PARAMETERS>(#NAME);                                     \
        return of_file(#NAME, file) == Way::wrong ? -1 : real ARGUMENTS;                           \
    }
#define LOCKSTEP_MOVE(NAME, DATA, OFFSET, PASSED)                                                  \
    ssize_t NAME(int file, DATA data, size_t bytes OFFSET) {                                       \
        static auto* const real = next<ssize_t(int, DATA, size_t OFFSET)>(#NAME);                  \
        return in_part(of_file(#NAME, file, true), bytes,                                          \
                       [&](size_t part) { return real(file, data, part PASSED); });                \
    }
#define LOCKSTEP_MOVE_PARTS(NAME, OFFSET, PASSED)                                                  \
    ssize_t NAME(int file, iovec const* parts, int count OFFSET) {                                 \
        static auto* const real = next<ssize_t(int, iovec const*, int OFFSET)>(#NAME);             \
        return in_part(of_file(#NAME, file, true), parts, count,                                   \
                       [&](iovec const* each, int n) { return real(file, each, n PASSED); });      \
    }
#define LOCKSTEP_COMMA ,

LOCKSTEP_OPEN(open)
LOCKSTEP_OPEN(open64)
LOCKSTEP_OPENAT(openat)
LOCKSTEP_OPENAT(openat64)
LOCKSTEP_MOVE(read, void*, , )
LOCKSTEP_MOVE(write, void const*, , )
LOCKSTEP_MOVE(pread, void*, LOCKSTEP_COMMA off_t offset, LOCKSTEP_COMMA offset)
LOCKSTEP_MOVE(pread64, void*, LOCKSTEP_COMMA off64_t offset, LOCKSTEP_COMMA offset)
LOCKSTEP_MOVE(pwrite, void const*, LOCKSTEP_COMMA off_t offset, LOCKSTEP_COMMA offset)
LOCKSTEP_MOVE(pwrite64, void const*, LOCKSTEP_COMMA off64_t offset, LOCKSTEP_COMMA offset)
LOCKSTEP_MOVE_PARTS(readv, , )
LOCKSTEP_MOVE_PARTS(writev, , )
LOCKSTEP_MOVE_PARTS(preadv, LOCKSTEP_COMMA off_t offset, LOCKSTEP_COMMA offset)
LOCKSTEP_MOVE_PARTS(preadv64, LOCKSTEP_COMMA off64_t offset, LOCKSTEP_COMMA offset)
LOCKSTEP_MOVE_PARTS(pwritev, LOCKSTEP_COMMA off_t offset, LOCKSTEP_COMMA offset)
LOCKSTEP_MOVE_PARTS(pwritev64, LOCKSTEP_COMMA off64_t offset, LOCKSTEP_COMMA offset)
LOCKSTEP_BY_FILE(fsync, (int file), (file))
LOCKSTEP_BY_FILE(fdatasync, (int file), (file))
LOCKSTEP_BY_FILE(ftruncate, (int file, off_t length) noexcept, (file, length))
LOCKSTEP_BY_FILE(ftruncate64, (int file, off64_t length) noexcept, (file, length))
LOCKSTEP_BY_PATH(mkdir, (char const* path, mode_t mode), (path, mode), path)
LOCKSTEP_BY_PATH(unlink, (char const* path), (path), path)
LOCKSTEP_BY_PATH(remove, (char const* path), (path), path)
LOCKSTEP_BY_PATH(rmdir, (char const* path), (path), path)
LOCKSTEP_BY_PATH(truncate, (char const* path, off_t length), (path, length), path)
LOCKSTEP_BY_PATH(rename, (char const* path, char const* to), (path, to), path)
LOCKSTEP_BY_PATH(statfs, (char const* path, struct statfs* info), (path, info), path)
LOCKSTEP_BY_PATH(statvfs, (char const* path, struct statvfs* info), (path, info), path)
LOCKSTEP_BY_PATH(statvfs64, (char const* path, struct statvfs64* info), (path, info), path)

// A close that fails has closed all the same.
int close(int file) {
    static auto* const real = next<int(int)>("close");
    if (of_file("close", file) == Way::wrong) {
        int const chosen = errno;
        real(file);
        errno = chosen;
        return -1;
    }
    return real(file);
}

// Said by the result, not by errno.
int posix_fallocate(int file, off_t offset, off_t bytes) {
    static auto* const real = next<int(int, off_t, off_t)>("posix_fallocate");
    return of_file("posix_fallocate", file) == Way::wrong ? errno : real(file, offset, bytes);
}
int posix_fallocate64(int file, off64_t offset, off64_t bytes) {
    static auto* const real = next<int(int, off64_t, off64_t)>("posix_fallocate64");
    return of_file("posix_fallocate64", file) == Way::wrong ? errno : real(file, offset, bytes);
}

FILE* fopen(char const* path, char const* mode) {
    static auto* const real = next<FILE*(char const*, char const*)>("fopen");
    return of_path("fopen", path) == Way::wrong ? nullptr : real(path, mode);
}
FILE* fopen64(char const* path, char const* mode) {
    static auto* const real = next<FILE*(char const*, char const*)>("fopen64");
    return of_path("fopen64", path) == Way::wrong ? nullptr : real(path, mode);
}

void* mmap(void* at, size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
    static auto* const real = next<void*(void*, size_t, int, int, int, off_t)>("mmap");
    bool const of_a_file = file >= 3 && (flags & MAP_ANONYMOUS) == 0;
    return of_a_file && of_file("mmap", file) == Way::wrong
               ? MAP_FAILED
               : real(at, bytes, protection, flags, file, offset);
}
int shm_open(char const* name, int flags, mode_t mode) {
    static auto* const real = next<int(char const*, int, mode_t)>("shm_open");
    auto const path = std::string("/dev/shm") + name;
    return of_path("shm_open", path.c_str()) == Way::wrong ? -1 : real(name, flags, mode);
}

/// After vfork, so that what it counts is counted in the parent.
int execvp(char const* program, char* const arguments[]) {
    static auto* const real = next<int(char const*, char* const[])>("execvp");
    return is_ours() && counted("execvp", program) == Way::wrong ? -1 : real(program, arguments);
}

} // extern "C"
