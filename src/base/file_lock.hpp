#pragma once

#include "base/descriptor.hpp"

#include <filesystem>

namespace lockstep {

/// A lock that this process holds while this object is alive. Other processes of the host see it,
/// as do those of other hosts where the file system supports that.
class FileLock {
  public:
    /// Creates the file if it does not exist, and takes the lock unless another process has it.
    ///
    /// Throws  Error 73 where the file cannot be made or written
    explicit FileLock(std::filesystem::path const& file);

    /// Whether another process holds the lock; false where a file system has no locks.
    bool is_held_elsewhere() const noexcept { return held_elsewhere_; }

  private:
    Descriptor file_;
    bool held_elsewhere_ = false;
};

} // namespace lockstep
