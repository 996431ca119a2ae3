#pragma once

#include "base/clock.hpp"
#include "lockstep/base/signals.hpp"

#include <filesystem>

namespace lockstep::launch {

/// Where the ranks of a launcher leave their marks: a directory in the run's directory, removed
/// with this object.
class ArrivalsDirectory {
  public:
    /// Marks that exist already are of an earlier attempt. If the directory cannot be made, no
    /// marks are left.
    explicit ArrivalsDirectory(std::filesystem::path const& run);
    ArrivalsDirectory(ArrivalsDirectory const&) = delete;
    ArrivalsDirectory& operator=(ArrivalsDirectory const&) = delete;
    ~ArrivalsDirectory();

    std::filesystem::path const& path() const noexcept { return path_; }

  private:
    std::filesystem::path path_;
};

} // namespace lockstep::launch
