#include "base/own_file.hpp"

#include "base/descriptor.hpp"
#include "base/file.hpp"
#include "base/output_error.hpp"
#include "base/own_directory.hpp"
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

std::filesystem::path directory_of(std::filesystem::path const& file) {
    return file.has_parent_path() ? file.parent_path() : ".";
}

std::string third_person_text(std::filesystem::path const& file, uid_t owner) {
    struct stat above {};
    bool const known = is_trusted(owner) ||
                       (::stat(directory_of(file).c_str(), &above) == 0 && above.st_uid == owner);
    return known ? "" : owner_text(owner);
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
    return ::lstat(file.c_str(), &info) == 0 ? third_person_text(file, info.st_uid) : "";
}

std::string third_person(std::filesystem::path const& file, std::filesystem::path const& within) {
    auto const whose = third_person(within);
    return whose.empty() ? third_person(file) : concat(within.string(), ": ", whose);
}

void require_own_place(std::filesystem::path const& file) {
    has_own_place(file);
}

bool has_own_place(std::filesystem::path const& file) {
    struct stat info {};
    if (::lstat(file.c_str(), &info) != 0) {
        return false;
    }
    bool const link = S_ISLNK(info.st_mode);
    bool const leads_on = link || S_ISDIR(info.st_mode);
    auto const whose = leads_on ? third_person_text(file, info.st_uid) : std::string();
    if (leads_on ? whose.empty() : S_ISREG(info.st_mode)) {
        return true;
    }
    auto const why = leads_on ? concat(link ? " is a link, and " : ": ", whose)
                              : concat(" is ", kind_text(info.st_mode));
    throw Error(ExitCode::cannot_create,
                {concat("cannot write in ", directory_of(file).string()),
                 concat(file.filename().string(), why),
                 concat("Remove ", file.string(), ", or name another directory")});
}

void make_own_directory(std::filesystem::path const& path) {
    require_own_place(path);
    make_directories(path);
    if (!has_own_place(path)) { // somebody has made and removed it meanwhile
        throw creation_error(concat("cannot make directory ", path.string()), path.parent_path(),
                             ENOENT);
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
