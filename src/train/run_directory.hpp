#pragma once

#include "base/clock.hpp"
#include "base/file_lock.hpp"
#include "base/lease.hpp"
#include "lockstep/base/error.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

namespace lockstep::train {

/// A run's directory, held by rank 0 while the run is alive: another live job that wants it ends
/// with 73; a newer attempt of the same job takes it over.
///
/// A run that a launch has started again may continue from memory while its directory cannot be
/// written. It takes the directory as soon as that is back, before it writes anything there.
class RunDirectory {
  public:
    /// Makes the directory and locks it.
    ///
    /// `continued`: the text of checkpoints/id of the run that this launch continues; empty: it may
    /// be a new run, and a directory that cannot be written is an error.
    /// `waiting` is called now and then while it watches whether another attempt is still alive.
    ///
    /// Throws  Error 73 or 74 when it cannot be made or written; 73 when another job holds it; 79
    ///         when another launch has taken over what this one would continue
    RunDirectory(std::filesystem::path path, std::string continued,
                 std::function<void()> const& waiting);
    RunDirectory(RunDirectory const&) = delete;
    RunDirectory& operator=(RunDirectory const&) = delete;
    ~RunDirectory() = default;

    /// Why it could not be used when the run started; nothing where it could.
    std::optional<Error> const& absence() const noexcept { return absence_; }
    /// The text of checkpoints/id, of a run that is continued; else empty.
    std::string const& continued() const noexcept { return continued_; }

    /// Takes a directory that was absent. Any thread.
    ///
    /// Throws  Error 79 when a newer attempt of the job, or another run, has taken the directory
    ///         over; 73 or 74 when it is still absent
    void require_ours();

    /// Takes a directory that was absent, if it is back; looks every few seconds. What else it
    /// finds, the next checkpoint tells.
    void look_for_it() noexcept;

    /// Moves what an earlier run has written aside, to PATH.archived-TIME; nothing is deleted, and
    /// files that are not the run's stay.
    void archive() const;

    std::filesystem::path const& path() const noexcept { return path_; }
    // As Lease says when the run starts.
    std::int64_t token() const noexcept { return token_; }
    bool is_requeued() const noexcept { return requeued_; }
    bool follows() const noexcept { return follows_; }
    std::string const& job() const noexcept { return job_; }

  private:
    void take(std::function<void()> const& waiting);
    void require_usable() const;
    void go_without(Error const& why);

    std::filesystem::path path_;
    std::string continued_;
    std::optional<Error> absence_;
    std::int64_t token_ = 0;
    bool requeued_ = false;
    bool follows_ = true;
    std::string job_;
    Stopwatch since_look_;
    std::mutex mutex_; ///< of what follows
    std::optional<FileLock> lock_;
    std::optional<Lease> lease_; ///< nothing: the directory is absent
};

/// Removes incomplete files that killed writers have left in a directory, which must belong only to
/// this run: FILE.partial-ATTEMPT, FILE.partial.
void remove_partials(std::filesystem::path const& directory);

} // namespace lockstep::train
