#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace lockstep {

/// The cores that this process may run on, by number.
std::vector<int> allowed_cores();

/// Cores of this host that are switched on.
int host_cores();

/// Cores' worth of time that the control group grants: less than there are cores where a container
/// or a scheduler limits it.
double granted_cores();

/// This host's name, before MPI could say it.
std::string own_host();

/// NUMA nodes of this host, as the kernel lists them: their numbers may have gaps.
int numa_nodes(std::filesystem::path const& listed = "/sys/devices/system/node");

/// "Intel(R) Xeon(R) …, 2 NUMA nodes".
std::string processor_text();

/// The directory, or the nearest above it that exists.
std::filesystem::path nearest_directory(std::filesystem::path directory);

/// What kind of file system holds a directory.
struct FileSystem {
    std::string type;        ///< "ext4", "nfs", "lustre"; a number where it is not known
    bool is_network = false; ///< other hosts may see it
    std::uint64_t free = 0;  ///< bytes, for us
    std::string lock;        ///< why files cannot be locked there; empty: they can
};

/// Of the directory, or of the nearest above it that exists. Makes and removes a small file there.
///
/// Throws  Error 73 or 74 when nothing can be written there
FileSystem file_system_of(std::filesystem::path directory);

/// A hash of the program and those of its libraries whose names contain `word`.
///
/// Throws  Error 66 or 74 when one of them cannot be read
std::uint64_t program_hash(std::string const& word);

/// A hash of a file's length, its first and its last 64 KiB: enough to tell two data sets apart.
///
/// Throws  Error 66 when it is missing
std::uint64_t rough_hash(std::filesystem::path const& file);

} // namespace lockstep
