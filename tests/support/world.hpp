#pragma once

#include "lockstep/comm/communicator.hpp"

namespace lockstep::test {

/// All ranks of the running test.
comm::Communicator const& world();

} // namespace lockstep::test
