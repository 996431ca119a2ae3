#pragma once

#include "lockstep/comm/communicator.hpp"

#include <cstdint>

namespace lockstep::comm {

/// Says that the rank gets on; for long loops. Not collective.
void progressed(Communicator const& comm) noexcept;

/// The step that the rank does, from 1 on; 0 before the first, and for a thread that does not speak
/// for it. Not collective.
std::int64_t current_step(Communicator const& comm) noexcept;

/// Says which step the rank does, from 1 on. Not collective.
void set_step(Communicator const& comm, std::int64_t step) noexcept;

} // namespace lockstep::comm
