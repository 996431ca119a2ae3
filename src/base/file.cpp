#include "base/file.hpp"

#include "base/descriptor.hpp"
#include "base/input_error.hpp"
#include "base/output_error.hpp"
#include "base/partial_file.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <fcntl.h>
#include <ranges>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

namespace lockstep {

namespace {

constexpr char const* disk_advice = "Check the disk's free space, quota and health";

void sync_directory(std::filesystem::path const& directory) {
    auto const where = directory.empty() ? std::filesystem::path(".") : directory;
    int const descriptor = ::open(where.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0 && errno == EACCES) {
        return; // one that may be written to, but not read, cannot be synced
    }
    if (descriptor < 0) {
        throw system_error(concat("cannot open directory ", where.string()), errno, disk_advice);
    }
    int const result = ::fsync(descriptor);
    int const error_number = errno;
    ::close(descriptor);
    // Some file systems cannot sync a directory and say EINVAL; renames are durable there anyhow.
    if (result != 0 && error_number != EINVAL) {
        throw system_error(concat("cannot sync directory ", where.string()), error_number,
                           disk_advice);
    }
}

/// Leaves no half line at the file's end. Where that fails, too, readers skip it.
void take_back(int descriptor, std::size_t bytes) {
    struct stat info {};
    if (bytes > 0 && ::fstat(descriptor, &info) == 0 && S_ISREG(info.st_mode) &&
        info.st_size >= static_cast<off_t>(bytes)) {
        [[maybe_unused]] int const result =
            ::ftruncate(descriptor, info.st_size - static_cast<off_t>(bytes));
    }
}

/// Where a link leads that this user or root has made. One of somebody else may lead to any file of
/// this user.
std::filesystem::path target_of_own_link(std::filesystem::path const& link) {
    Descriptor const itself(::open(link.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    struct stat info {};
    std::string target(PATH_MAX, '\0');
    auto const length = ::readlinkat(itself.get(), "", target.data(), target.size());
    if (length < 0 || ::fstat(itself.get(), &info) != 0 ||
        (info.st_uid != ::geteuid() && info.st_uid != 0)) {
        throw Error(ExitCode::cannot_create,
                    {concat("cannot write ", link.string()), "it is a link that another user made",
                     "Remove the link, or name another directory"});
    }
    target.resize(static_cast<std::size_t>(length));
    return link.parent_path() / target;
}

} // namespace

File::File(std::filesystem::path path, int flags) : path_(std::move(path)) {
    bool const reading = (flags & O_ACCMODE) == O_RDONLY;
    struct stat info {};
    // A pipe's other end may never come, and opening a device may do something.
    if (reading && ::stat(path_.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
        throw Error(ExitCode::no_input, {concat("cannot open ", path_.string()),
                                         concat("it is ", kind_text(info.st_mode)), "Name a file"});
    }
    // Not blocking: a pipe that somebody puts there meanwhile would wait for its other end.
    descriptor_ = ::open(path_.c_str(), flags | O_CLOEXEC | O_NONBLOCK, 0644);
    bool const linked = descriptor_ < 0 && errno == ELOOP && !reading;
    if (linked) { // to a pipe, too, that somebody reads, such as /dev/stdout
        auto const target = target_of_own_link(path_);
        descriptor_ = ::open(target.c_str(), (flags & ~O_NOFOLLOW) | O_CLOEXEC | O_NONBLOCK, 0644);
    }
    int const error_number = errno;
    bool const known =
        descriptor_ >= 0 ? ::fstat(descriptor_, &info) == 0 : ::lstat(path_.c_str(), &info) == 0;
    if (known && !linked && (S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode))) {
        ::close(descriptor_);
        throw Error(reading ? ExitCode::no_input : ExitCode::cannot_create,
                    {concat("cannot open ", path_.string()),
                     concat("it is ", kind_text(info.st_mode)),
                     "Remove it, or name another directory"});
    }
    if (descriptor_ >= 0) {
        ::fcntl(descriptor_, F_SETFL, flags);
    }
    if (descriptor_ < 0) {
        bool const creating = (flags & O_CREAT) != 0;
        auto const what = concat(creating ? "cannot create " : "cannot open ", path_.string());
        if (creating && error_number == ENOENT) {
            throw Error(ExitCode::cannot_create,
                        {what, "its directory does not exist", "Make the directory first"});
        }
        throw creating ? output_error(what, path_, error_number)
        : reading      ? input_error(path_, error_number)
                       : system_error(what, error_number, "Check the path and its permissions");
    }
}

File File::open_read(std::filesystem::path const& path) {
    return {path, O_RDONLY};
}
File File::open_write(std::filesystem::path const& path) {
    return {path, O_RDWR | O_NOFOLLOW};
}
File File::create(std::filesystem::path const& path) {
    return {path, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW};
}
File File::create_new(std::filesystem::path const& path) {
    std::error_code ignored; // what cannot be removed cannot be created either
    std::filesystem::remove(path, ignored);
    return {path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW};
}
File File::append(std::filesystem::path const& path) {
    return {path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW};
}

File::File(File&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

File& File::operator=(File&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(descriptor_, other.descriptor_);
    return *this;
}

File::~File() {
    if (descriptor_ >= 0) {
        ::close(descriptor_);
    }
}

std::uint64_t File::size() const {
    struct stat info {};
    if (::fstat(descriptor_, &info) != 0) {
        throw system_error(concat("cannot read the size of ", path_.string()), errno, disk_advice);
    }
    return static_cast<std::uint64_t>(info.st_size);
}

void File::read_at(std::uint64_t offset, std::span<std::byte> into) const {
    while (!into.empty()) {
        auto const got = ::pread(descriptor_, into.data(), into.size(), static_cast<off_t>(offset));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            throw system_error(concat("cannot read ", path_.string(), " at byte ", offset), errno,
                               disk_advice);
        }
        if (got == 0) {
            throw Error(ExitCode::data,
                        {concat("cannot read ", path_.string()),
                         concat("the file ends at byte ", size(), ", but ", into.size(),
                                " bytes are needed from byte ", offset, " on"),
                         "The file was cut short. Copy the file again from its source, or create "
                         "the file again"});
        }
        into = into.subspan(static_cast<std::size_t>(got));
        offset += static_cast<std::uint64_t>(got);
    }
}

void File::write_at(std::uint64_t offset, std::span<std::byte const> from) const {
    while (!from.empty()) {
        auto const put =
            ::pwrite(descriptor_, from.data(), from.size(), static_cast<off_t>(offset));
        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put <= 0) {
            throw system_error(concat("cannot write ", path_.string()), put < 0 ? errno : ENOSPC,
                               disk_advice);
        }
        from = from.subspan(static_cast<std::size_t>(put));
        offset += static_cast<std::uint64_t>(put);
    }
}

void File::append_text(std::string const& text) const {
    std::size_t done = 0;
    while (done < text.size()) {
        auto const put = ::write(descriptor_, text.data() + done, text.size() - done);
        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put <= 0) {
            int const error_number = put < 0 ? errno : ENOSPC;
            take_back(descriptor_, done);
            throw system_error(concat("cannot write ", path_.string()), error_number, disk_advice);
        }
        done += static_cast<std::size_t>(put);
    }
}

void File::claim_space(std::uint64_t bytes) const {
    int const result = ::posix_fallocate(descriptor_, 0, static_cast<off_t>(bytes));
    // A file system that cannot claim space is written without the claim.
    if (result != 0 && result != EOPNOTSUPP && result != EINVAL) {
        throw system_error(
            concat("no room for ", bytes_text(bytes), " in ", path_.string()), result,
            concat(
                bytes_text(free_space(path_.parent_path())),
                " are free there: remove files, or use another disk (for a run: run.directory)"));
    }
}

void File::sync() const {
    if (::fsync(descriptor_) != 0) {
        throw system_error(concat("cannot sync ", path_.string()), errno, disk_advice);
    }
}

std::string read_text(std::filesystem::path const& path) {
    auto const file = File::open_read(path);
    std::string text(file.size(), '\0');
    file.read_at(0, std::as_writable_bytes(std::span(text)));
    return text;
}

void write_text_durably(std::filesystem::path const& path, std::string const& text) {
    PartialFile partial(partial_path(path));
    auto const file = File::create_new(partial.path());
    file.write_at(0, std::as_bytes(std::span(text)));
    file.sync();
    partial.rename(path);
}

void rename_durably(std::filesystem::path const& from, std::filesystem::path const& to) {
    if (::rename(from.c_str(), to.c_str()) != 0) {
        int const error_number = errno;
        struct stat there {};
        bool const of_others = ::lstat(to.c_str(), &there) == 0 && there.st_uid != ::geteuid();
        if ((error_number == EPERM || error_number == EACCES) && of_others) {
            throw Error(ExitCode::cannot_create,
                        {concat("cannot replace ", to.string()),
                         concat("it belongs to another user (uid ", there.st_uid,
                                "), and in this directory only its owner may replace it"),
                         "Have it removed, or name another directory"});
        }
        throw system_error(concat("cannot rename ", from.string(), " to ", to.string()),
                           error_number, disk_advice);
    }
    sync_directory(to.parent_path());
}

void require_no_file_on(std::filesystem::path const& path) {
    for (auto part = path; part.has_relative_path(); part = part.parent_path()) {
        std::error_code unseen;
        if (std::filesystem::exists(part, unseen) && !std::filesystem::is_directory(part, unseen)) {
            throw Error(ExitCode::cannot_create,
                        {concat("cannot make directory ", path.string()),
                         concat(part.string(), " is a file, not a directory"),
                         "Move that file, or name another directory (for a run: run.directory)"});
        }
    }
}

void make_directories(std::filesystem::path const& path) {
    std::error_code failure;
    std::vector<std::filesystem::path> holders; // of those that are new
    for (auto part = path; !part.empty() && !std::filesystem::exists(part, failure);
         part = part.parent_path()) {
        holders.push_back(part.parent_path());
    }
    std::filesystem::create_directories(path, failure);
    if (failure) {
        require_no_file_on(path);
        throw creation_error(concat("cannot make directory ", path.string()), path.parent_path(),
                             failure.value());
    }
    std::ranges::for_each(std::views::reverse(holders), sync_directory);
}

void require_writable(std::filesystem::path const& directory) {
    PartialFile const probe(directory / concat("probe-", new_token())); // removed in any case
    File::create_new(probe.path()).write_at(0, std::as_bytes(std::span("1", 1)));
}

Error creation_error(std::string const& what, std::filesystem::path const& directory,
                     int error_number) {
    if (error_number != ENOSPC && error_number != EDQUOT && error_number != EIO) {
        return {ExitCode::cannot_create,
                system_error(what, error_number,
                             "Check the permissions of the directory, or name one that can be "
                             "written to (for a run: run.directory)")
                    .text()};
    }
    auto place = directory.empty() ? std::filesystem::path(".") : directory;
    std::error_code absent;
    while (!std::filesystem::exists(place, absent) && place.has_parent_path() &&
           place != place.parent_path()) {
        place = place.parent_path();
    }
    struct statvfs info {};
    bool const counted = ::statvfs(place.c_str(), &info) == 0 && info.f_files > 0;
    bool const no_inodes = error_number == ENOSPC && counted && info.f_favail == 0;
    return {
        ExitCode::io,
        {what,
         no_inodes ? concat("the file system has no inode left for another file (it already holds ",
                            count_text(static_cast<std::int64_t>(info.f_files)), ")")
                   : system_text(error_number),
         no_inodes ? "Remove files that are not needed (many small ones first), or use another disk"
                   : disk_advice}};
}

std::uint64_t free_space(std::filesystem::path const& path) {
    struct statvfs info {};
    auto const where = path.empty() ? std::filesystem::path(".") : path;
    if (::statvfs(where.c_str(), &info) != 0) {
        throw system_error(concat("cannot read the free space of ", where.string()), errno,
                           disk_advice);
    }
    return static_cast<std::uint64_t>(info.f_bavail) * info.f_frsize;
}

} // namespace lockstep
