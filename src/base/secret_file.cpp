#include "base/secret_file.hpp"

#include "base/descriptor.hpp"
#include "base/file.hpp"
#include "base/partial_file.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace lockstep {

namespace {

constexpr off_t longest = 4096;

Descriptor made_for_owner(std::filesystem::path const& file) {
    Descriptor made(
        ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!made.is_open()) {
        throw creation_error(concat("cannot make ", file.string()), file.parent_path(), errno);
    }
    return made;
}

} // namespace

void make_secret_file(std::filesystem::path const& file) {
    static_cast<void>(made_for_owner(file));
}

void write_secret_text(std::filesystem::path const& file, std::string const& text) {
    auto const directory = file.parent_path();
    if (!directory.empty()) {
        make_directories(directory);
    }
    PartialFile partial(partial_path(file));
    auto const made = made_for_owner(partial.path());
    if (::write(made.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
        ::fsync(made.get()) != 0) {
        throw system_error(concat("cannot write ", partial.path().string()), errno,
                           "Check the disk's free space, quota and health");
    }
    partial.rename(file);
}

std::string read_secret_text(std::filesystem::path const& file, std::string const& danger,
                             std::string const& what_to_do) {
    struct stat status {};
    if (::stat(file.c_str(), &status) != 0) {
        throw system_error(concat("cannot read ", file.string()), errno, what_to_do);
    }
    if (!S_ISREG(status.st_mode)) {
        throw Error(ExitCode::data, {concat(file.string(), " is not a key"),
                                     "it is not a regular file", what_to_do});
    }
    if (status.st_uid != ::geteuid() && status.st_uid != 0) {
        throw Error(ExitCode::usage,
                    {concat("cannot use ", file.string()),
                     concat("it belongs to another user (uid ", status.st_uid, "): ", danger),
                     "Use a key file that belongs to you"});
    }
    if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
        throw Error(ExitCode::usage, {concat("others may read or write ", file.string()), danger,
                                      "Give the file mode 0600 (chmod 600), and make a new key if "
                                      "others may have read this key"});
    }
    if (status.st_size > longest) {
        throw Error(ExitCode::data,
                    {concat(file.string(), " is not a key"),
                     concat("the file has ", status.st_size, " bytes, but a key is shorter"),
                     what_to_do});
    }
    return read_text(file);
}

} // namespace lockstep
