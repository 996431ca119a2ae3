#pragma once

#include <filesystem>
#include <string>

namespace lockstep {

/// Who holds the lock of a file (base/file_lock.hpp).
struct LockHolder {
    std::string text; ///< a sentence; where the kernel does not tell the process, how to find it
    int process = 0;  ///< 0: unknown
};

LockHolder lock_holder(std::filesystem::path const& file);

} // namespace lockstep
