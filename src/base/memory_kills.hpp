#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace lockstep {

/// Where the kernel counts the processes that it kills for want of memory.
struct MemoryKills {
    std::string where; ///< "the control group /job_17", or "this host"
    std::filesystem::path file;

    std::uint64_t count() const;
};

/// The counter of the control group of a running process, or that of the host if the group does not
/// count kills.
MemoryKills memory_kills_of(int id);

} // namespace lockstep
