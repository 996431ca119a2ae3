#include "base/file_lock.hpp"

#include "base/file.hpp"
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
    : file_(::open(file.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, mode)) {
    if (int const error_number = errno; !file_.is_open()) {
        auto const directory = file.parent_path();
        if (error_number == ELOOP) {
            throw Error(ExitCode::cannot_create,
                        {concat("cannot lock ", file.string()), "it is a link",
                         "Remove the link, or name another directory"});
        }
        throw creation_error(concat("cannot write in ", directory.string()), directory,
                             error_number);
    }
    struct stat info {};
    if (::fstat(file_.get(), &info) == 0 && (info.st_mode & reading_by_others) != 0 &&
        info.st_uid == ::geteuid()) { // of an earlier version
        ::fchmod(file_.get(), (info.st_mode & 07777) & ~reading_by_others);
    }
    held_elsewhere_ = ::flock(file_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

} // namespace lockstep
