#pragma once

#include "base/file_lock.hpp"
#include "train/lease.hpp"

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace lockstep::train {

/// A run's directory, held by rank 0 while the run is alive: another live job that wants it gets
/// 73, a newer attempt of the same job gets it.
class RunDirectory {
  public:
    /// Makes the directory and locks it.
    ///
    /// `waiting` is called now and then while it watches whether another attempt is still there.
    ///
    /// Throws  Error 73 when it cannot be made or written, or when another job holds it
    RunDirectory(std::filesystem::path path, std::function<void()> const& waiting);
    RunDirectory(RunDirectory const&) = delete;
    RunDirectory& operator=(RunDirectory const&) = delete;
    ~RunDirectory() = default;

    /// Throws  Error 79 when a newer attempt of the job has taken the directory over
    void require_ours() const { lease_->require(); }

    /// Moves what an earlier run has written aside, to PATH.archived-TIME; nothing is deleted, and
    /// what is not the run's stays.
    void archive() const;

    std::filesystem::path const& path() const noexcept { return path_; }
    std::int64_t token() const noexcept { return lease_->number(); }
    bool is_requeued() const noexcept { return lease_->is_requeued(); }

  private:
    std::filesystem::path path_;
    std::optional<FileLock> lock_;
    std::optional<Lease> lease_;
};

/// Removes what writers that were killed left half done in a directory, which has to be this run's
/// alone: FILE.partial-ATTEMPT, FILE.partial.
void remove_partials(std::filesystem::path const& directory);

} // namespace lockstep::train
