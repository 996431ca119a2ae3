#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "asked_hosts.hpp"
#include "listener.hpp"

namespace lockstep::launch {

/// Whether a host of the plan has this name.
bool is_named(Host const& host, std::string const& name);

/// Whether of several hosts at most this one answers: then it is the one that is cut off.
bool is_alone(std::vector<HostAnswer> const& answers);

/// A host that does not answer, of those that have `trained`, where no rank has told and no
/// launcher has named one, or where a rank has told that its own host has lost contact, and that
/// host answers; nothing: there is none.
std::optional<LauncherVerdict> missed_host(std::vector<HostAnswer> const& answers,
                                           std::vector<Host> const& trained,
                                           std::string const& told, bool launcher_names);

/// A host that is left out for the rest of the job, and why.
struct RetiredHost {
    std::string name;
    std::string evidence;

    bool operator==(RetiredHost const&) const = default;
};

/// What an attempt's end says against a host.
struct Suspicion {
    std::string host; ///< that the ranks or the launcher blame; empty: none
    std::string why{};
    int losses = 1;       ///< of the job that were blamed on it
    bool certain = false; ///< other hosts have found that it computes wrongly
};

/// The hosts to leave out for the rest of the job. One host is suspect after a loss, and is
/// convicted where other hosts have found it wrong, where it does not answer, where its test finds
/// a fault that no other host has, or by its third loss. Without a suspicion, only wrong bits
/// convict. A host that answers is left out only while more than `min` answer.
std::vector<RetiredHost> convicted(std::vector<HostAnswer> const& answers,
                                   Suspicion const& suspicion, std::int64_t min);

/// Counts the losses that are blamed on hosts. One at a step that was reached before counts for
/// nothing: a run that fails there always has no host to blame.
class LossCount {
  public:
    int add(std::string const& host, std::int64_t step);

  private:
    struct Count {
        int losses = 0;
        std::int64_t step = -1;
    };
    std::map<std::string, Count> counts_;
};

/// The hosts to start on: those of the plan that answer, and as many spares as are missing.
std::vector<Host> chosen_hosts(std::vector<HostAnswer> const& answers,
                               std::vector<Host> const& hosts,
                               std::vector<std::string> const& retired);

} // namespace lockstep::launch
