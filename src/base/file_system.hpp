#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace lockstep {

/// The directory, or the nearest above it that exists.
std::filesystem::path nearest_directory(std::filesystem::path directory);

/// What kind of file system holds a directory.
struct FileSystem {
    std::string type;        ///< "ext4", "nfs", "lustre"; its number where the name is not known
    bool is_network = false; ///< other hosts may see it
    std::uint64_t free = 0;  ///< bytes, for us
    std::string lock;        ///< why files cannot be locked there; empty: they can
};

/// The file system of the directory, or of the nearest one above it that exists. Makes and removes
/// a small file there.
///
/// Throws  Error 73 or 74 when nothing can be written there
FileSystem file_system_of(std::filesystem::path directory);

} // namespace lockstep
