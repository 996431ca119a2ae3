#pragma once

#include "base/file_lock.hpp"
#include "base/lease.hpp"

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace lockstep::train {

/// A run's directory, held by rank 0 while the run is alive: another live job that wants it ends
/// with 73; a newer attempt of the same job takes it over.
class RunDirectory {
  public:
    /// Makes the directory and locks it.
    ///
    /// `waiting` is called now and then while it watches whether another attempt is still alive.
    ///
    /// Throws  Error 73 when it cannot be made or written, or when another job holds it
    RunDirectory(std::filesystem::path path, std::function<void()> const& waiting);
    RunDirectory(RunDirectory const&) = delete;
    RunDirectory& operator=(RunDirectory const&) = delete;
    ~RunDirectory() = default;

    /// Throws  Error 79 when a newer attempt of the job has taken the directory over
    void require_ours() const { lease_->require(); }

    /// Moves what an earlier run has written aside, to PATH.archived-TIME; nothing is deleted, and
    /// files that are not the run's stay.
    void archive() const;

    std::filesystem::path const& path() const noexcept { return path_; }
    std::int64_t token() const noexcept { return lease_->number(); }
    bool is_requeued() const noexcept { return lease_->is_requeued(); }
    bool follows() const noexcept { return lease_->follows(); } ///< as Lease::follows
    std::string const& job() const noexcept { return lease_->job(); }

  private:
    std::filesystem::path path_;
    std::optional<FileLock> lock_;
    std::optional<Lease> lease_;
};

/// Removes incomplete files that killed writers have left in a directory, which must belong only to
/// this run: FILE.partial-ATTEMPT, FILE.partial.
void remove_partials(std::filesystem::path const& directory);

} // namespace lockstep::train
