#pragma once

#include "base/clock.hpp"
#include "lockstep/base/signals.hpp"

#include <filesystem>

namespace lockstep::launch {

/// Where the ranks of a launcher leave their marks: a directory in the run's, which goes with it.
class ArrivalsDirectory {
  public:
    /// What lies there already is of an earlier attempt. Where it cannot be made, no mark is left.
    explicit ArrivalsDirectory(std::filesystem::path const& run);
    ArrivalsDirectory(ArrivalsDirectory const&) = delete;
    ArrivalsDirectory& operator=(ArrivalsDirectory const&) = delete;
    ~ArrivalsDirectory();

    std::filesystem::path const& path() const noexcept { return path_; }

  private:
    std::filesystem::path path_;
};

} // namespace lockstep::launch
