#include "base/output_error.hpp"

#include "base/file.hpp"
#include "base/text.hpp"

#include <cerrno>
#include <sys/stat.h>
#include <unistd.h>

namespace lockstep {

std::string kind_text(mode_t mode) {
    return S_ISREG(mode)    ? ""
           : S_ISDIR(mode)  ? "a directory"
           : S_ISLNK(mode)  ? "a link"
           : S_ISFIFO(mode) ? "a pipe"
           : S_ISSOCK(mode) ? "a socket"
                            : "a device";
}

Error output_error(std::string const& what, std::filesystem::path const& file, int error_number) {
    struct stat info {};
    // In a directory with the sticky bit the kernel refuses files and links of others, too.
    bool const refused = error_number == EACCES || error_number == EPERM;
    if (refused && ::lstat(file.c_str(), &info) == 0 && info.st_uid != ::geteuid()) {
        return {ExitCode::cannot_create,
                {what,
                 concat(S_ISLNK(info.st_mode) ? "it is a link, and it" : "it",
                        " belongs to another user (uid ", info.st_uid, ")"),
                 "Have it removed, or name another directory"}};
    }
    return creation_error(what, file.parent_path(), error_number);
}

} // namespace lockstep
