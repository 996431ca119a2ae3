#pragma once

#include "base/clock.hpp"
#include "lockstep/base/signals.hpp"

#include <filesystem>

namespace lockstep::launch {

/// Where the ranks of a launcher leave their marks: a directory of this process in the run's
/// directory, removed with this object. Another launch of the same run has another one.
class ArrivalsDirectory {
  public:
    /// Marks that exist already are of an earlier attempt of this process. If the directory cannot
    /// be made, no marks are left. The directory of a run that has begun (`continues`) is not made:
    /// it may have been unmounted.
    ///
    /// Throws  Error 73 where a third person has made the directory of all launches
    ArrivalsDirectory(std::filesystem::path const& run, bool continues);
    ArrivalsDirectory(ArrivalsDirectory const&) = delete;
    ArrivalsDirectory& operator=(ArrivalsDirectory const&) = delete;
    ~ArrivalsDirectory();

    /// Empty: no marks are left.
    std::filesystem::path const& path() const noexcept { return path_; }

  private:
    std::filesystem::path run_;
    std::filesystem::path path_;
    bool made_run_ = false; ///< the run's directory was not there before
};

} // namespace lockstep::launch
