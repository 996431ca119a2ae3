#pragma once

#include "base/clean_up.hpp"

#include <filesystem>
#include <optional>

namespace lockstep {

/// A new directory that only this user can read; it is removed with all its contents when the
/// object is destroyed, or a signal ends the process.
class ScratchDirectory {
  public:
    /// Throws  Error 73 or 74 where it cannot be made
    ScratchDirectory();
    ScratchDirectory(ScratchDirectory const&) = delete;
    ScratchDirectory& operator=(ScratchDirectory const&) = delete;
    ~ScratchDirectory();

    std::filesystem::path const& path() const noexcept { return path_; }

  private:
    std::filesystem::path path_;
    std::optional<CleanUp> clean_up_;
};

} // namespace lockstep
