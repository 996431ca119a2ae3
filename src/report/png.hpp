#pragma once

#include "lockstep/events/events.hpp"

#include <string>

namespace lockstep::report {

/// The bytes of a PNG file of 8 bits a channel.
///
/// Throws  Error 70 when it cannot be compressed
std::string png_of(train::Picture const& picture);

} // namespace lockstep::report
