#pragma once

#include "base/descriptor.hpp"

#include <filesystem>

namespace lockstep {

/// A lock that a process has while this object is alive: other processes of the host see it, and
/// those of other hosts where the file system has such locks.
class FileLock {
  public:
    /// Makes the file where it is not there, and takes the lock unless another process has it.
    ///
    /// Throws  Error 73 where the file cannot be made or written
    explicit FileLock(std::filesystem::path const& file);

    /// Whether another process has it. Where a file system has no locks nobody has.
    bool is_held_elsewhere() const noexcept { return held_elsewhere_; }

  private:
    Descriptor file_;
    bool held_elsewhere_ = false;
};

} // namespace lockstep
