#pragma once

#include "comm/topology.hpp"
#include "lockstep/comm/communicator.hpp"

#include "check_report.hpp"

namespace lockstep::measure {

/// What every part of a check is given.
struct CheckContext {
    comm::Communicator const& world;
    comm::Topology const& topology;
    CheckReport& report;
};

/// A communicator of the first rank of each host; on the other ranks, one of the other ranks.
///
/// Collective  over the world
comm::Communicator first_of_hosts(CheckContext const& context);

} // namespace lockstep::measure
