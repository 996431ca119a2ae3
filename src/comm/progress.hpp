#pragma once

#include "lockstep/comm/communicator.hpp"

#include <cstdint>
#include <string_view>

namespace lockstep::comm {

/// Reports that the rank makes progress; for long loops. Not collective.
void progressed(Communicator const& comm) noexcept;

/// The step that the rank is doing, from 1 on; 0 before the first, and on a thread that does not
/// report for the rank. Not collective.
std::int64_t current_step(Communicator const& comm) noexcept;

/// Sets the step that the rank is doing, from 1 on. Not collective.
void set_step(Communicator const& comm, std::int64_t step) noexcept;

/// Names the devices that the rank computes on where it has several: "cuda:0 and 3 more".
/// Not collective.
void name_devices(Communicator const& comm, std::string_view devices) noexcept;

} // namespace lockstep::comm
