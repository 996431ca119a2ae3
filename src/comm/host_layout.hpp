#pragma once

#include "lockstep/comm/communicator.hpp"

namespace lockstep::comm {

/// Which ranks share memory: those of a host, or groups of neighbours on a larger host, as if each
/// group were a host of its own.
class HostLayout {
  public:
    /// As MPI finds them.
    HostLayout() = default;

    /// `ranks` is at least 1.
    static HostLayout of_neighbours(int ranks) { return HostLayout(ranks); }

    /// The ranks that share memory with this one.
    ///
    /// Collective  over `world`
    Communicator split(Communicator const& world) const {
        return neighbours_ > 0 ? world.split(world.rank() / neighbours_) : world.split_by_host();
    }

  private:
    explicit HostLayout(int neighbours) : neighbours_(neighbours) {}

    int neighbours_ = 0; ///< 0: as MPI finds them
};

} // namespace lockstep::comm
