#include "base/file_lock.hpp"

#include "base/file.hpp"
#include "base/text.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sys/file.h>

namespace lockstep {

FileLock::FileLock(std::filesystem::path const& file)
    : file_(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
    if (int const error_number = errno; !file_.is_open()) {
        auto const directory = file.parent_path();
        throw creation_error(concat("cannot write in ", directory.string()), directory,
                             error_number);
    }
    held_elsewhere_ = ::flock(file_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

} // namespace lockstep
