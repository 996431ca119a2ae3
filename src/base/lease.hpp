#pragma once

#include "base/descriptor.hpp"
#include "lockstep/base/error.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <thread>

namespace lockstep {

/// One process's claim on a run's directory: the file `lease` in it, which holds a number that
/// grows with every start, the scheduler's job, the host and the process. A thread renews the
/// file's time while the claim is held. It works where file locks do not: across hosts, and against
/// an older attempt of the same job that a scheduler believes dead.
///
/// What is not promised: a process that is stopped between `require` and the rename that follows
/// goes through with it when it is woken. Both attempts write the same state then.
class Lease {
  public:
    /// Takes the directory over from its previous holder: an older attempt of the same job or the
    /// same `lockstep launch` (only Slurm numbers attempts; elsewhere each start is newer), a
    /// process that ended, or one whose file is not renewed: it is watched for up to 3 periods.
    ///
    /// `held` says that another process of this host has the directory's lock, and hence is alive.
    ///
    /// `waiting` is called now and then while it watches.
    ///
    /// Units   `period_s`: seconds between renewals
    /// Throws  Error 73 when another live job holds it, or the file cannot be written; 79 when a
    ///         later attempt of this very job has it
    explicit Lease(
        std::filesystem::path const& directory, bool held, double period_s = 5,
        std::function<void()> const& waiting = [] {});
    Lease(Lease const&) = delete;
    Lease& operator=(Lease const&) = delete;
    /// Marks the claim as ended, so that the next start need not watch it.
    ~Lease();

    std::int64_t number() const noexcept { return number_; }

    /// Whether an earlier attempt of this very job had the directory last.
    bool is_requeued() const noexcept { return requeued_; }
    /// The same of a job or a `lockstep launch`, whether or not anything counts its attempts.
    bool follows() const noexcept { return follows_; }
    /// The scheduler's id of the job, or that of the launch; empty: neither.
    std::string const& job() const noexcept { return job_; }

    /// Throws  Error 79 when a newer attempt has taken the directory over
    void require() const;

    static constexpr char const* file_name = "lease";

  private:
    std::filesystem::path file_;
    std::int64_t number_ = 0;
    bool requeued_ = false;
    bool follows_ = false;
    std::string job_;
    Descriptor own_; ///< this attempt's file, not a newer one's
    std::jthread renewal_;
};

/// The scheduler's id of this job, which a requeued job keeps; outside one that of the launcher
/// that starts ranks again (LOCKSTEP_LAUNCH); else empty.
std::string own_job_id();

/// The Error 79 of an attempt whose directory was taken over by one with a greater number, or by
/// another launch; none where it was not. Not collective.
std::optional<Error> taken_over(std::filesystem::path const& directory, std::int64_t number);

/// The Error 79 of an attempt that a launch has started (LOCKSTEP_LAUNCH), where the directory is
/// claimed by another launch or by a run without one; else none. Not collective.
std::optional<Error> claimed_by_others(std::filesystem::path const& directory);

/// The number of the claim on a directory; 0: there is none. Not collective.
std::int64_t claimed_number(std::filesystem::path const& directory);

/// Whether the claim on a directory is this process's own; false, too, where it cannot be read. Not
/// collective.
bool is_claimed_here(std::filesystem::path const& directory) noexcept;

} // namespace lockstep
