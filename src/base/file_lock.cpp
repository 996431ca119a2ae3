#include "base/file_lock.hpp"

#include "base/output_error.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace lockstep {

namespace {

constexpr mode_t reading_by_others = S_IRGRP | S_IROTH;
constexpr mode_t mode = 0622; ///< less what the umask takes: who may write may lock, as the owner

} // namespace

FileLock::FileLock(std::filesystem::path const& file)
    // Not blocking: a pipe of this name, of whoever, would wait for a reader.
    : file_(::open(file.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, mode)) {
    int const error_number = errno;
    // Of a link the kernel says several things, in a directory with the sticky bit that it may not
    // be opened.
    struct stat info {};
    bool const known =
        file_.is_open() ? ::fstat(file_.get(), &info) == 0 : ::lstat(file.c_str(), &info) == 0;
    if (known && !S_ISREG(info.st_mode)) {
        throw Error(ExitCode::cannot_create, {concat("cannot lock ", file.string()),
                                              concat("it is ", kind_text(info.st_mode)),
                                              "Remove it, or name another directory"});
    }
    if (!file_.is_open()) {
        throw output_error(concat("cannot lock ", file.string()), file, error_number);
    }
    if ((info.st_mode & reading_by_others) != 0 &&
        info.st_uid == ::geteuid()) { // of an earlier version
        ::fchmod(file_.get(), (info.st_mode & 07777) & ~reading_by_others);
    }
    held_elsewhere_ = ::flock(file_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

} // namespace lockstep
