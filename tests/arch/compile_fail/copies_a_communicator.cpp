// A copy would be a collective call in disguise.
#include "comm/collectives.hpp"

void copy_it(lockstep::comm::Communicator const& comm) {
    lockstep::comm::Communicator const copy = comm;
}
