#pragma once

#include <optional>
#include <string>
#include <vector>

#include "blame.hpp"
#include "launch_plan.hpp"
#include "road.hpp"

namespace lockstep::launch {

/// The hosts of a job over its attempts: those that train, and those that are left out for the rest
/// of it.
class JobHosts {
  public:
    /// Hosts that an earlier launch of this job has left out stay out.
    ///
    /// Throws  Error 69 where no other is left
    JobHosts(LaunchPlan const& plan, Watcher const& watcher);

    /// For the next attempt.
    std::vector<Host> const& chosen() const noexcept { return chosen_; }

    /// Asks those that are not left out, after the end of an attempt, whose ranks are ended there.
    void ask_all(AttemptEnd const& end);
    std::vector<Host> answering() const;
    /// Whether of several hosts at most this one answers: then it is the one that is cut off.
    bool is_cut_off() const;
    /// A host of the last attempt that is lost, as `missed_host` has it.
    std::optional<LauncherVerdict> missed(AttemptEnd const& end) const;

    /// Leaves out those that the evidence convicts; `blamed`: the host that the end is blamed on,
    /// or empty.
    void judge(AttemptEnd const& end, Road road, std::string const& blamed);

  private:
    std::vector<Host> in_use() const;
    void note(RetiredHost const& bad) const;

    LaunchPlan const& plan_;
    std::vector<Host> all_; ///< spares last
    std::vector<Host> chosen_;
    std::vector<Host> trained_; ///< in the last attempt
    std::vector<HostAnswer> answers_;
    std::vector<std::string> retired_;
    LossCount losses_;
};

} // namespace lockstep::launch
