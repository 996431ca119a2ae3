#include "base/host_facts.hpp"

#include "base/file.hpp"
#include "base/hash.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <link.h>
#include <sched.h>
#include <set>
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
    auto const probe = directory / concat(".lockstep-check-", ::getpid());
    int const descriptor = ::open(probe.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    if (descriptor < 0) {
        throw system_error("writing into " + directory.string(), errno,
                           "Point run.directory at a place where you may write");
    }
    bool const locked = ::flock(descriptor, LOCK_EX | LOCK_NB) == 0;
    int const why = errno;
    ::close(descriptor);
    ::unlink(probe.c_str());
    return locked ? "" : system_text(why);
}

int add_object(dl_phdr_info* info, std::size_t /*size*/, void* paths) {
    static_cast<std::vector<std::string>*>(paths)->emplace_back(info->dlpi_name);
    return 0;
}

} // namespace

std::string own_host() {
    std::array<char, 256> name{};
    ::gethostname(name.data(), name.size() - 1);
    return name.data();
}

std::vector<int> allowed_cores() {
    cpu_set_t set;
    CPU_ZERO(&set);
    std::vector<int> cores;
    if (::sched_getaffinity(0, sizeof(set), &set) == 0) {
        for (int core = 0; core < CPU_SETSIZE; ++core) {
            if (CPU_ISSET(core, &set)) {
                cores.push_back(core);
            }
        }
    }
    return cores;
}

int host_cores() {
    return static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
}

double granted_cores() {
    auto const all = static_cast<double>(host_cores());
    std::ifstream groups("/proc/self/cgroup");
    std::string line;
    double granted = all;
    while (std::getline(groups, line)) {
        auto const parts = split(line, ':');
        if (parts.size() < 3 || !parts[1].empty()) {
            continue;
        }
        for (auto const& group : {parts[2], std::string()}) { // of its own, and seen from inside
            std::ifstream file(concat("/sys/fs/cgroup", group, "/cpu.max"));
            std::string quota;
            double period = 0;
            if (file >> quota >> period && quota != "max" && period > 0) {
                granted = std::min(granted, std::stod(quota) / period);
            }
        }
    }
    return granted;
}

int numa_nodes(std::filesystem::path const& listed) {
    int nodes = 0;
    std::error_code none; // a kernel without NUMA
    for (auto const& entry : std::filesystem::directory_iterator(listed, none)) {
        auto const name = entry.path().filename().string();
        nodes += name.starts_with("node") && name.size() > 4 &&
                 name.find_first_not_of("0123456789", 4) == std::string::npos;
    }
    return nodes;
}

std::string processor_text() {
    std::ifstream file("/proc/cpuinfo");
    std::string line;
    std::string name = "processor not known";
    while (std::getline(file, line)) {
        if (line.starts_with("model name")) {
            name = trimmed(line.substr(line.find(':') + 1));
            break;
        }
    }
    auto const nodes = numa_nodes();
    return concat(name, ", ",
                  nodes <= 1 ? std::string("1 NUMA node") : concat(nodes, " NUMA nodes"));
}

std::filesystem::path nearest_directory(std::filesystem::path directory) {
    directory = std::filesystem::absolute(directory);
    while (!std::filesystem::is_directory(directory)) {
        directory = directory.parent_path();
    }
    return directory;
}

FileSystem file_system_of(std::filesystem::path directory) {
    directory = nearest_directory(directory);
    struct statfs info {};
    if (::statfs(directory.c_str(), &info) != 0) {
        throw system_error("looking at " + directory.string(), errno, "Name another directory");
    }
    auto const magic = static_cast<std::uint32_t>(info.f_type);
    auto const* const kind = std::find_if(kinds.begin(), kinds.end(),
                                          [&](Kind const& known) { return known.magic == magic; });
    bool const known = kind != kinds.end();
    return {known ? kind->name : concat("of type ", hex(magic)), known && kind->is_network,
            free_space(directory), lock_problem(directory)};
}

std::uint64_t program_hash(std::string const& word) {
    std::vector<std::string> loaded;
    ::dl_iterate_phdr(add_object, &loaded);
    std::set<std::string> paths{"/proc/self/exe"};
    for (auto const& path : loaded) {
        if (std::filesystem::path(path).filename().string().find(word) != std::string::npos) {
            paths.insert(path);
        }
    }
    std::vector<std::uint64_t> hashes; // sorted, since hosts may have them in other places
    hashes.reserve(paths.size());
    for (auto const& path : paths) {
        hashes.push_back(hash64(read_text(path)));
    }
    std::sort(hashes.begin(), hashes.end());
    return hash64(std::as_bytes(std::span(hashes)));
}

std::uint64_t rough_hash(std::filesystem::path const& path) {
    constexpr std::uint64_t most = 1 << 16;
    auto const file = File::open_read(path);
    std::uint64_t const size = file.size();
    std::vector<std::byte> bytes(std::min(size, most));
    Hasher hasher;
    hasher.add(std::as_bytes(std::span(&size, 1)));
    for (auto const offset : {std::uint64_t{0}, size - bytes.size()}) {
        file.read_at(offset, bytes);
        hasher.add(bytes);
    }
    return hasher.digest();
}

} // namespace lockstep
