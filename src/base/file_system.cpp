#include "base/file_system.hpp"

#include "base/file.hpp"
#include "base/hash.hpp"
#include "base/partial_file.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/statfs.h>
#include <unistd.h>

namespace lockstep {

namespace {

struct Kind {
    std::uint32_t magic; ///< as in statfs(2) and the kernel's linux/magic.h
    char const* name;
    bool is_network;
};

constexpr std::array kinds{
    Kind{0x0000ef53, "ext4", false},    Kind{0x58465342, "xfs", false},
    Kind{0x9123683e, "btrfs", false},   Kind{0x01021994, "tmpfs", false},
    Kind{0x794c7630, "overlay", false}, Kind{0x2fc12fc1, "zfs", false},
    Kind{0x00006969, "nfs", true},      Kind{0x0bd00bd0, "lustre", true},
    Kind{0x47504653, "gpfs", true},     Kind{0x19830326, "beegfs", true},
    Kind{0x00c36400, "ceph", true},     Kind{0xff534d42, "cifs", true},
    Kind{0xfe534d42, "smb", true},      Kind{0x65735546, "fuse", true},
    Kind{0x01021997, "9p", true},       Kind{0x7461636f, "ocfs2", true},
    Kind{0x01161970, "gfs2", true},     Kind{0xaad7aaea, "panfs", true},
};

/// Why flock fails there; empty: it does not. The lock of a run's directory is one.
std::string lock_problem(std::filesystem::path const& directory) {
    auto const probe = directory / concat(".lockstep-check-", new_token());
    int const descriptor = ::open(probe.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    if (descriptor < 0) {
        throw system_error("cannot write to " + directory.string(), errno,
                           "Set run.directory to a directory that you can write to");
    }
    bool const locked = ::flock(descriptor, LOCK_EX | LOCK_NB) == 0;
    int const why = errno;
    ::close(descriptor);
    ::unlink(probe.c_str());
    return locked ? "" : system_text(why);
}

} // namespace

std::filesystem::path nearest_directory(std::filesystem::path directory) {
    directory = std::filesystem::absolute(directory);
    std::error_code unseen; // what cannot be looked into is none, either
    while (!std::filesystem::is_directory(directory, unseen)) {
        directory = directory.parent_path();
    }
    return directory;
}

FileSystem file_system_of(std::filesystem::path directory) {
    directory = nearest_directory(directory);
    struct statfs info {};
    if (::statfs(directory.c_str(), &info) != 0) {
        throw system_error("cannot determine the file system of " + directory.string(), errno,
                           "Name another directory");
    }
    auto const magic = static_cast<std::uint32_t>(info.f_type);
    auto const* const kind = std::find_if(kinds.begin(), kinds.end(),
                                          [&](Kind const& known) { return known.magic == magic; });
    bool const known = kind != kinds.end();
    return {known ? kind->name : concat("of type ", hex(magic)), known && kind->is_network,
            free_space(directory), lock_problem(directory)};
}

} // namespace lockstep
