#include "base/partial_file.hpp"

#include "base/file.hpp"
#include "base/host_facts.hpp"
#include "base/random_token.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <system_error>
#include <unistd.h>
#include <utility>

namespace lockstep {

std::string token_host() {
    return own_host().substr(0, 32); // names of files have an end
}

std::string new_token() {
    return concat(token_host(), "-", ::getpid(), "-", random_token(8));
}

std::filesystem::path partial_path(std::filesystem::path const& file, std::string const& token) {
    return concat(file.string(), ".partial-", token);
}

PartialFile::PartialFile(std::filesystem::path path)
    : path_(std::move(path)), removal_([this] { remove_unless_renamed(); }) {}

PartialFile::~PartialFile() {
    remove_unless_renamed();
}

void PartialFile::remove_unless_renamed() const noexcept {
    if (!renamed_) {
        std::error_code ignored; // what brought us here is the one to tell
        std::filesystem::remove(path_, ignored);
    }
}

void require_replaceable(std::filesystem::path const& name) {
    auto const there = std::filesystem::symlink_status(name);
    if (std::filesystem::exists(there) && !std::filesystem::is_regular_file(there) &&
        !std::filesystem::is_symlink(there)) {
        throw Error(ExitCode::cannot_create, {concat(name.string(), " cannot be replaced"),
                                              "it is not a regular file", "Name another file"});
    }
}

void PartialFile::rename(std::filesystem::path const& name) {
    require_replaceable(name);
    rename_durably(path_, name);
    renamed_ = true;
}

void PartialFile::rename_unsynced(std::filesystem::path const& name) {
    require_replaceable(name);
    std::filesystem::rename(path_, name);
    renamed_ = true;
}

} // namespace lockstep
