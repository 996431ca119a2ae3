#pragma once

#include "lockstep/base/error.hpp"

#include <atomic>
#include <optional>

namespace lockstep {

/// What the exception that is being handled means, of a library that this room does not know; none
/// where it means nothing in particular.
using ForeignError = std::optional<Error> (*)();

/// What current_error asks of exceptions whose types it does not know. Null until code that knows
/// such a library is loaded; set once, as that happens.
std::atomic<ForeignError>& foreign_error() noexcept;

/// A failed allocation of host memory. `needed` is a clause: "2.0 GiB were needed".
Error out_of_memory(std::string const& needed);

/// What to do where a process or its device has too little memory.
std::string memory_remedy();

} // namespace lockstep
