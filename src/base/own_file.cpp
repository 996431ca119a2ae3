#include "base/own_file.hpp"

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

constexpr mode_t of_others = S_IWGRP | S_IWOTH;

bool is_trusted(uid_t owner) {
    return owner == ::geteuid() || owner == 0;
}

std::string owner_text(uid_t owner) {
    return concat("it belongs to another user (uid ", owner, ")");
}

void refuse_choice(std::filesystem::path const& file, std::string const& whose) {
    if (!whose.empty()) {
        throw Error(ExitCode::no_input,
                    {concat("cannot use ", file.string()),
                     concat(whose, ", who is not the owner of the directory above"),
                     "Remove it. A file that you name yourself is used whoever owns it"});
    }
}

} // namespace

std::string distrust(std::filesystem::path const& file) {
    struct stat info {};
    if (::lstat(file.c_str(), &info) != 0) {
        return {};
    }
    if (!S_ISREG(info.st_mode)) {
        return "it is not a regular file";
    }
    if (!is_trusted(info.st_uid)) {
        return owner_text(info.st_uid);
    }
    return (info.st_mode & of_others) != 0 ? "other users may write to it" : "";
}

std::string third_person(std::filesystem::path const& file) {
    struct stat info {};
    struct stat above {};
    auto const directory = file.has_parent_path() ? file.parent_path() : ".";
    if (::lstat(file.c_str(), &info) != 0 || is_trusted(info.st_uid) ||
        (::stat(directory.c_str(), &above) == 0 && above.st_uid == info.st_uid)) {
        return {};
    }
    return owner_text(info.st_uid);
}

std::string third_person(std::filesystem::path const& file, std::filesystem::path const& within) {
    auto const whose = third_person(within);
    return whose.empty() ? third_person(file) : concat(within.string(), ": ", whose);
}

void require_own_place(std::filesystem::path const& file) {
    std::error_code none;
    auto const whose = third_person(file);
    if (whose.empty()) {
        return;
    }
    bool const link = std::filesystem::is_symlink(file, none);
    if (link || std::filesystem::is_directory(file, none)) {
        throw Error(ExitCode::cannot_create,
                    {concat("cannot write in ", file.parent_path().string()),
                     concat(file.filename().string(), link ? " is a link, and " : ": ", whose),
                     concat("Remove ", file.string(), ", or name another directory")});
    }
}

void require_own_choice(std::filesystem::path const& file) {
    refuse_choice(file, third_person(file));
}

void require_own_choice(std::filesystem::path const& file, std::filesystem::path const& within) {
    refuse_choice(file, third_person(file, within));
}

void make_private_directory(std::filesystem::path const& path) {
    std::error_code none;
    if (!std::filesystem::exists(std::filesystem::symlink_status(path, none))) {
        make_directories(path);
    }
    Descriptor const made(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    int const error_number = errno;
    struct stat info {};
    auto const what = concat("cannot use directory ", path.string());
    constexpr char const* next = "Remove it, or name another directory";
    if (!made.is_open() || ::fstat(made.get(), &info) != 0) {
        bool const link = std::filesystem::is_symlink(path, none);
        throw Error(ExitCode::cannot_create,
                    {what, link ? "it is a link" : system_text(error_number), next});
    }
    if (!is_trusted(info.st_uid)) {
        throw Error(
            ExitCode::cannot_create,
            {what, concat(owner_text(info.st_uid), ", who could change what it holds"), next});
    }
    if (info.st_uid == ::geteuid()) {
        ::fchmod(made.get(), info.st_mode & (07777 & ~(S_IRWXG | S_IRWXO)));
    }
}

} // namespace lockstep
