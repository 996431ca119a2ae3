// Preloaded into a program, this makes calls fail that do not fail by themselves:
//   LOCKSTEP_FAIL=statvfs            the free space for checkpoints cannot be read, the first time
//   LOCKSTEP_FAIL=renew              the file of a run's attempt cannot be opened to renew it
//   LOCKSTEP_FAIL=unlink             the probe of checkpoint.local cannot be removed
//   LOCKSTEP_FAIL=threads:LEVEL      MPI grants no more than this (1: funnelled, 2: serialized)
//   LOCKSTEP_FAIL=exit:RANK:FILE     a thread of that rank calls exit() once FILE is there

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <string>
#include <string_view>
#include <sys/statvfs.h>
#include <thread>
#include <unistd.h>

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
