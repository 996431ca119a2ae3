#pragma once

#include <map>
#include <string>
#include <vector>

#include "hosts.hpp"

namespace lockstep::launch {

/// What is asked of hosts after a loss: to end what is left of the last attempt there, and to test
/// themselves (`lockstep probe`).
struct HostQuestion {
    std::string program;
    std::string directory;                           ///< of the run
    std::string launch;                              ///< whose ranks are ended (LOCKSTEP_LAUNCH)
    std::map<std::string, std::vector<int>> ranks{}; ///< their processes, by host
    std::string silent{}; ///< a host that ranks have missed: it is asked first whether it is there
};

struct HostAnswer {
    Host host;
    bool answers = false;
    std::string fault{};  ///< "disk: …": what its test has found; empty: nothing
    bool certain = false; ///< of wrong bits: nothing else can be the reason
};

/// Asks all at once. A host that cannot run the test, but answers, has no fault.
std::vector<HostAnswer> ask(std::vector<Host> const& hosts, HostQuestion const& question);

/// The hosts that answer.
std::vector<Host> answering(std::vector<HostAnswer> const& answers);

/// Whether a name is that of this host.
bool is_here(std::string const& host);

} // namespace lockstep::launch
