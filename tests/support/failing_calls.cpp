// Preloaded into a program, this makes calls fail that do not fail by themselves:
//   LOCKSTEP_FAIL=statvfs            the free space for checkpoints cannot be read, the first time
//   LOCKSTEP_FAIL=renew              the file of a run's attempt cannot be opened to renew it
//   LOCKSTEP_FAIL=unlink             the probe of checkpoint.local cannot be removed
//   LOCKSTEP_FAIL=threads:LEVEL      MPI grants no more than this (1: funnelled, 2: serialized)
//   LOCKSTEP_FAIL=exit:RANK:FILE     a thread of that rank calls exit() once FILE is there
//   LOCKSTEP_FAIL=memory             the watchdog of each of two ranks gets none, three times
//   LOCKSTEP_FAIL=reserve            who reserves shared memory is killed meanwhile
//   LOCKSTEP_FAIL=flip               a bit of a data set turns over on its way to the disk
//   LOCKSTEP_FAIL=close              the close of a data set that is written fails, the first time

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <string>
#include <string_view>
#include <sys/statvfs.h>
#include <thread>
#include <unistd.h>
#include <vector>

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

namespace {

std::string_view asked() {
    char const* const text = std::getenv("LOCKSTEP_FAIL");
    return text == nullptr ? "" : text;
}

template <class Function>
Function* next(char const* name) {
    return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

int granted(int level) {
    constexpr std::string_view key = "threads:";
    return asked().starts_with(key) ? std::atoi(asked().substr(key.size()).data()) : level;
}

bool is_kept(std::string_view path) {
    return asked() == "unlink" && path.find("/probe-") != std::string_view::npos;
}

int fails() {
    errno = EIO;
    return -1;
}

thread_local int refusals = 0; ///< of memory that this thread asks for

/// As it waits on one host: for its own wake, for no other host, for two ranks.
bool is_watchdog(pollfd const* all, nfds_t count) {
    static std::atomic<bool> seen{false};
    return asked() == "memory" && count == 4 && all[1].fd == -1 && !seen.exchange(true);
}

/// Whether a call for a data set that is being written is the one that is to go wrong.
bool is_next(std::string_view how, int descriptor) {
    static std::atomic<bool> done{false};
    if (asked() != how) {
        return false;
    }
    std::string path(4096, '\0');
    auto const link = "/proc/self/fd/" + std::to_string(descriptor);
    auto const length = ::readlink(link.c_str(), path.data(), path.size());
    path.resize(length < 0 ? 0 : static_cast<std::size_t>(length));
    return path.find(".h5.partial-") != std::string::npos && !done.exchange(true);
}

template <class Offset>
ssize_t put(char const* name, int descriptor, void const* from, std::size_t size, Offset at) {
    auto* const real = next<ssize_t(int, void const*, std::size_t, Offset)>(name);
    if (size < 4096 || !is_next("flip", descriptor)) { // metadata is small
        return real(descriptor, from, size, at);
    }
    auto const* const bytes = static_cast<char const*>(from);
    std::vector<char> turned(bytes, bytes + size);
    turned[size / 2] = static_cast<char>(turned[size / 2] ^ 0x10);
    return real(descriptor, turned.data(), size, at);
}

/// The thread that ends the process behind the program's back.
struct Ender {
    Ender() {
        auto const text = std::string(asked());
        char const* const rank = std::getenv("OMPI_COMM_WORLD_RANK");
        if (!text.starts_with("exit:") || rank == nullptr ||
            !text.substr(5).starts_with(std::string(rank) + ":")) {
            return;
        }
        std::thread([file = text.substr(text.find(':', 5) + 1)] {
            while (::access(file.c_str(), F_OK) != 0) {
                std::this_thread::sleep_for(std::chrono::milliseconds(10));
            }
            std::exit(3);
        }).detach();
    }
} const ender;

} // namespace

extern "C" {

int statvfs(char const* path, struct statvfs* info) noexcept {
    static std::atomic<int> calls{0};
    bool const meant = asked() == "statvfs" && std::string_view(path).ends_with("/checkpoints");
    return meant && calls++ == 0 ? fails() : next<decltype(statvfs)>("statvfs")(path, info);
}

int unlink(char const* path) noexcept {
    return is_kept(path) ? fails() : next<decltype(unlink)>("unlink")(path);
}

int remove(char const* path) noexcept {
    return is_kept(path) ? fails() : next<decltype(remove)>("remove")(path);
}

int open(char const* path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    auto const mode = va_arg(more, mode_t);
    va_end(more);
    bool const is_attempt = std::string_view(path).ends_with("/lease") && (flags & O_CREAT) == 0 &&
                            (flags & O_ACCMODE) == O_RDWR;
    return asked() == "renew" && is_attempt ? fails()
                                            : next<decltype(open)>("open")(path, flags, mode);
}

void* __libc_malloc(std::size_t size);

void* malloc(std::size_t size) {
    if (refusals > 0) {
        --refusals;
        return nullptr;
    }
    return __libc_malloc(size);
}

int posix_fallocate(int descriptor, off_t offset, off_t length) {
    std::string path(4096, '\0');
    auto const link = "/proc/self/fd/" + std::to_string(descriptor);
    bool const named = ::readlink(link.c_str(), path.data(), path.size()) > 0;
    if (asked() == "reserve" && named && path.starts_with("/dev/shm/lockstep-")) {
        static_cast<void>(std::raise(SIGKILL));
    }
    return next<decltype(posix_fallocate)>("posix_fallocate")(descriptor, offset, length);
}

int poll(pollfd* all, nfds_t count, int timeout) {
    refusals = is_watchdog(all, count) ? 3 : refusals;
    return next<decltype(poll)>("poll")(all, count, timeout);
}

int close(int descriptor) {
    bool const meant = is_next("close", descriptor);
    int const result = next<decltype(close)>("close")(descriptor);
    return meant ? fails() : result;
}

ssize_t pwrite(int descriptor, void const* from, std::size_t size, off_t at) {
    return put("pwrite", descriptor, from, size, at);
}

ssize_t pwrite64(int descriptor, void const* from, std::size_t size, off64_t at) {
    return put("pwrite64", descriptor, from, size, at);
}

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
    int const code = PMPI_Init_thread(argc, argv, required, provided);
    *provided = granted(*provided);
    return code;
}

int MPI_Query_thread(int* provided) {
    int const code = PMPI_Query_thread(provided);
    *provided = granted(*provided);
    return code;
}
}
