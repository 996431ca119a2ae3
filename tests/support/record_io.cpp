// Preloaded into a program, this writes down what it does to files below LOCKSTEP_RECORD_UNDER, in
// order, into the log LOCKSTEP_RECORD, for crash_states.py to replay. Files are named by inode, so
// that they keep their names through a rename. A record: one text line, then as many bytes of data
// as it says last.

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <string>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

namespace {

template <class Function>
Function* next(char const* name) {
    return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

bool is_below(char const* path) {
    char const* const under = std::getenv("LOCKSTEP_RECORD_UNDER");
    return under != nullptr && std::strncmp(path, under, std::strlen(under)) == 0;
}

/// The inode of a file that is recorded; 0 of others.
ino_t recorded(int descriptor) {
    std::array<char, 4096> path{};
    auto const link = "/proc/self/fd/" + std::to_string(descriptor);
    struct stat info {};
    if (::readlink(link.c_str(), path.data(), path.size() - 1) < 0 || !is_below(path.data()) ||
        ::fstat(descriptor, &info) != 0) {
        return 0;
    }
    return info.st_ino;
}

void log(std::string const& line, void const* data = nullptr, std::size_t bytes = 0) {
    std::string record = line + " " + std::to_string(bytes) + "\n";
    record.append(static_cast<char const*>(data), bytes);
    int const file = next<int(char const*, int, ...)>("open")(
        std::getenv("LOCKSTEP_RECORD"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    next<ssize_t(int, void const*, size_t)>("write")(file, record.data(), record.size());
    ::close(file);
}

void log_write(int descriptor, off_t offset, void const* data, ssize_t bytes) {
    if (auto const file = recorded(descriptor); file != 0 && bytes > 0) {
        log("write " + std::to_string(file) + " " + std::to_string(offset), data,
            static_cast<std::size_t>(bytes));
    }
}

void log_vector(int descriptor, off_t offset, iovec const* parts, int count, ssize_t bytes) {
    for (int i = 0; i < count && bytes > 0; ++i) {
        auto const part = std::min<ssize_t>(static_cast<ssize_t>(parts[i].iov_len), bytes);
        log_write(descriptor, offset, parts[i].iov_base, part);
        offset += part;
        bytes -= part;
    }
}

void log_length(char const* what, int descriptor, off_t length) {
    if (auto const file = recorded(descriptor); file != 0) {
        log(std::string(what) + " " + std::to_string(file) + " " + std::to_string(length));
    }
}

int opened(char const* function, char const* path, int flags, mode_t mode) {
    int const descriptor = next<int(char const*, int, ...)>(function)(path, flags, mode);
    if (descriptor >= 0 && (flags & O_TRUNC) != 0) {
        log_length("length", descriptor, 0);
    }
    return descriptor;
}

mode_t mode_of(int flags, va_list rest) {
    return (flags & O_CREAT) != 0 ? static_cast<mode_t>(va_arg(rest, int)) : 0;
}

} // namespace

extern "C" {

int open(char const* path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    auto const mode = mode_of(flags, rest);
    va_end(rest);
    return opened("open", path, flags, mode);
}
int open64(char const* path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    auto const mode = mode_of(flags, rest);
    va_end(rest);
    return opened("open64", path, flags, mode);
}

ssize_t write(int descriptor, void const* data, size_t bytes) {
    auto const put = next<ssize_t(int, void const*, size_t)>("write")(descriptor, data, bytes);
    if (put > 0 && recorded(descriptor) != 0) {
        log_write(descriptor, ::lseek(descriptor, 0, SEEK_CUR) - put, data, put);
    }
    return put;
}
ssize_t writev(int descriptor, iovec const* parts, int count) {
    auto const put = next<ssize_t(int, iovec const*, int)>("writev")(descriptor, parts, count);
    if (put > 0 && recorded(descriptor) != 0) {
        log_vector(descriptor, ::lseek(descriptor, 0, SEEK_CUR) - put, parts, count, put);
    }
    return put;
}
ssize_t pwrite(int descriptor, void const* data, size_t bytes, off_t offset) {
    auto const put =
        next<ssize_t(int, void const*, size_t, off_t)>("pwrite")(descriptor, data, bytes, offset);
    log_write(descriptor, offset, data, put);
    return put;
}
ssize_t pwrite64(int descriptor, void const* data, size_t bytes, off64_t offset) {
    return pwrite(descriptor, data, bytes, offset);
}
ssize_t pwritev(int descriptor, iovec const* parts, int count, off_t offset) {
    auto const put =
        next<ssize_t(int, iovec const*, int, off_t)>("pwritev")(descriptor, parts, count, offset);
    log_vector(descriptor, offset, parts, count, put);
    return put;
}
ssize_t pwritev64(int descriptor, iovec const* parts, int count, off64_t offset) {
    return pwritev(descriptor, parts, count, offset);
}

int ftruncate(int descriptor, off_t length) noexcept {
    int const result = next<int(int, off_t)>("ftruncate")(descriptor, length);
    log_length("length", descriptor, length);
    return result;
}
int ftruncate64(int descriptor, off64_t length) noexcept {
    return ftruncate(descriptor, length);
}
int posix_fallocate(int descriptor, off_t offset, off_t length) {
    int const result = next<int(int, off_t, off_t)>("posix_fallocate")(descriptor, offset, length);
    if (result == 0) {
        log_length("claim", descriptor, offset + length);
    }
    return result;
}
int posix_fallocate64(int descriptor, off64_t offset, off64_t length) {
    return posix_fallocate(descriptor, offset, length);
}

int fsync(int descriptor) {
    int const result = next<int(int)>("fsync")(descriptor);
    log_length("sync", descriptor, 0);
    return result;
}
int fdatasync(int descriptor) {
    int const result = next<int(int)>("fdatasync")(descriptor);
    log_length("sync", descriptor, 0);
    return result;
}

int rename(char const* from, char const* to) noexcept {
    struct stat info {};
    bool const counts = is_below(from) && ::stat(from, &info) == 0;
    if (counts) {
        log("rename " + std::to_string(info.st_ino) + " " + to);
    }
    return next<int(char const*, char const*)>("rename")(from, to);
}
}
