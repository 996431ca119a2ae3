#include "check_context.hpp"

#include "base/text.hpp"

namespace lockstep::measure {

comm::Communicator first_of_hosts(CheckContext const& context) {
    return context.world.split(context.topology.local_rank == 0 ? 0 : 1);
}

} // namespace lockstep::measure
