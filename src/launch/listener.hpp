#pragma once

#include "lockstep/base/error.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace lockstep::launch {

/// What the launcher says was lost.
struct LauncherVerdict {
    std::string who;  ///< "rank 1 (node2)", "all ranks of node2"
    std::string host; ///< empty: it was not named
    bool whole_host = false;
    ErrorText text;
};

/// Reads what ranks and launcher (Open MPI's mpirun, Slurm's srun) print on standard error about
/// how an attempt ends.
class LaunchListener {
  public:
    /// `host_of` returns the host of a rank that the launcher names without its host.
    explicit LaunchListener(std::function<std::string(int rank)> host_of)
        : host_of_(std::move(host_of)) {}

    void hear(std::string_view text);

    /// The line in which a rank has printed the root cause; empty: none has.
    std::string const& told() const noexcept { return told_; }
    /// The step at which the run has said that it continues without its directory; -1: it has not.
    std::int64_t continues_at() const noexcept { return continues_at_; }
    /// What the launcher reports as lost; of several, the loss of a host, since it causes the
    /// others; else the first.
    std::optional<LauncherVerdict> const& verdict() const noexcept { return verdict_; }

  private:
    void hear_line(std::string_view line);
    void rank_lost(std::string const& rank, std::string const& named, std::string const& why);
    void host_lost(std::string const& host, std::string const& why);

    std::function<std::string(int rank)> host_of_;
    std::string line_; ///< that is not complete yet
    std::string told_;
    std::int64_t continues_at_ = -1;
    bool daemon_lost_ = false; ///< the next lines name it
    std::string exited_;       ///< the rank whose exit code comes next
    std::optional<LauncherVerdict> verdict_;
};

} // namespace lockstep::launch
