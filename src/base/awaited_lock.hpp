#pragma once

#include "base/file_lock.hpp"

#include <functional>

namespace lockstep {

/// The lock of a run or a search that may just have ended. Its last process may outlive its mpirun
/// by moments; a process that was killed while it writes keeps the lock for as long as its disk
/// stands still. Both are waited for; the lock may be held elsewhere all the same.
///
/// `waiting` is called now and then meanwhile.
/// Throws  Error 73 where the file cannot be made or written
FileLock awaited_lock(
    std::filesystem::path const& file, std::function<void()> const& waiting = [] {});

} // namespace lockstep
