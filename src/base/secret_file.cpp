#include "base/secret_file.hpp"

#include "base/descriptor.hpp"
#include "base/file.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace lockstep {

namespace {

constexpr off_t longest = 4096;

std::string directory_of(std::filesystem::path const& file) {
    return file.has_parent_path() ? file.parent_path().string() : ".";
}

} // namespace

void write_secret_text(std::filesystem::path const& file, std::string const& text) {
    make_directories(directory_of(file));
    auto const partial = file.string() + concat(".partial-", ::getpid());
    {
        Descriptor const made(
            ::open(partial.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
        if (!made.is_open()) {
            throw creation_error(concat("cannot make ", partial), directory_of(file), errno);
        }
        if (::write(made.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
            ::fsync(made.get()) != 0) {
            throw system_error(concat("cannot write ", partial), errno, "Check the disk");
        }
    }
    rename_durably(partial, file);
}

std::string read_secret_text(std::filesystem::path const& file, std::string const& what_to_do) {
    struct stat status {};
    if (::stat(file.c_str(), &status) != 0) {
        throw system_error(concat("cannot read ", file.string()), errno, what_to_do);
    }
    if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
        throw Error(ExitCode::usage, {concat("others may read or write ", file.string()),
                                      "whoever has a private key can act as its owner",
                                      "Give it mode 0600 (chmod 600), and make a new one if others "
                                      "may have read it"});
    }
    if (status.st_size > longest) {
        throw Error(ExitCode::data, {concat(file.string(), " is no key"),
                                     concat("it has ", status.st_size, " bytes"), what_to_do});
    }
    return read_text(file);
}

} // namespace lockstep
