#pragma once

#include "lockstep/comm/communicator.hpp"

#include <cstddef>
#include <span>

namespace lockstep::comm {

/// Sends bytes to one rank, which has to `receive` the same number; returns when they are on their
/// way. Not collective.
///
/// Throws  Error 69
void send(Communicator const& comm, std::span<std::byte const> bytes, int to);

/// Fills `into` with what rank `from` sends. Not collective.
///
/// Throws  Error 69
void receive(Communicator const& comm, std::span<std::byte> into, int from);

} // namespace lockstep::comm
