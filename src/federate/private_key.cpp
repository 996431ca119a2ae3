#include "federate/private_key.hpp"

#include "base/descriptor.hpp"
#include "base/file.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace lockstep::federate {

namespace {

constexpr char const* key_format = "lockstep federation key 1";

std::string directory_of(std::filesystem::path const& file) {
    return file.has_parent_path() ? file.parent_path().string() : ".";
}

std::string key_text(std::string const& name, Secret const& secret) {
    return concat(key_format, "\n", name, "\n", hex_text(secret.bytes()), "\n");
}

/// Nobody else may read it, not even before it is complete.
void make_key_file(std::filesystem::path const& file, std::string const& text) {
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

Error no_key(std::filesystem::path const& file) {
    return {ExitCode::data,
            {concat(file.string(), " is not a key of a federation"),
             "it is damaged, or another kind of file", "Name the file that init or join has made"}};
}

} // namespace

PrivateKey PrivateKey::open_or_make(std::filesystem::path const& file, std::string const& name) {
    if (!std::filesystem::exists(file)) {
        make_key_file(file, key_text(name, Secret::random()));
    }
    return open(file, name);
}

PrivateKey PrivateKey::simulated(std::filesystem::path const& file, std::string const& name,
                                 Secret const& secret) {
    if (!std::filesystem::exists(file)) {
        make_key_file(file, key_text(name, secret));
    }
    return open(file, name);
}

PrivateKey PrivateKey::open(std::filesystem::path const& file, std::string const& name) {
    struct stat status {};
    if (::stat(file.c_str(), &status) != 0) {
        throw system_error(concat("cannot read ", file.string()), errno,
                           "Name the file that init or join has made with --key");
    }
    if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
        throw Error(ExitCode::usage, {concat("others may read or write ", file.string()),
                                      "whoever has a private key can act as its owner",
                                      "Give it mode 0600 (chmod 600), and make a new one if others "
                                      "may have read it"});
    }
    if (status.st_size > 4096) {
        throw no_key(file);
    }
    auto const lines = split(read_text(file), '\n');
    auto const secret = lines.size() == 4 ? fixed_octets<Secret::size>(lines[2]) : std::nullopt;
    if (!secret || lines[0] != key_format) {
        throw no_key(file);
    }
    if (lines[1] != name) {
        throw Error(ExitCode::usage,
                    {concat(file.string(), " is the key of ", lines[1]),
                     concat("the key of ", name, " is needed"), "Name another file with --key"});
    }
    return {file, name, Secret(*secret)};
}

void PrivateKey::promise(std::string const& federation, std::string const& what,
                         std::string const& digest) const {
    auto const journal = file_.string() + ".journal";
    auto const begin = concat(federation, " ", what, " ");
    if (std::filesystem::exists(journal)) {
        for (auto const& line : split(read_text(journal), '\n')) {
            if (line.starts_with(begin) && line != begin + digest) {
                throw Error(
                    ExitCode::data,
                    {concat(what, " is not the same as before"),
                     concat(
                         journal,
                         " recorded different contents then: a second answer could reveal secrets"),
                     "Restore the files that were there before, or ask the coordinator to abandon "
                     "the round (--abandon)"});
            }
            if (line == begin + digest) {
                return;
            }
        }
    }
    auto const file = File::append(journal);
    file.append_text(concat(begin, digest, "\n"));
    file.sync();
}

} // namespace lockstep::federate
