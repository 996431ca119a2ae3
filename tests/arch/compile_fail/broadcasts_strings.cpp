// Strings do not lie in memory as they would have to be sent.
#include "comm/collectives.hpp"

#include <vector>

void send(lockstep::comm::Communicator const& comm) {
    std::vector<std::string> values(3);
    lockstep::comm::broadcast(comm, std::span(values));
}
