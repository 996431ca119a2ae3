#pragma once

#include "lockstep/comm/communicator.hpp"

#include <source_location>
#include <string>

namespace lockstep::comm {

/// What a function that all ranks call together asks of them: that it gets the same on each of
/// them, as `expects` asks it of one. `facts` describes what that is; the ranks exchange a hash of
/// it, once, where something is opened, and not in steps.
///
/// Collective  over `world`
/// Throws      AgreedError 70 with `rule` and the place, of the lowest rank whose facts are not
///             rank 0's
void expects_same(Communicator const& world, std::string const& facts, char const* rule,
                  std::source_location at = std::source_location::current());

} // namespace lockstep::comm
