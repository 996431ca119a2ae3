#pragma once

#include <string>

namespace lockstep {

/// Bytes that all interfaces but the loopback have received and sent, from a text like
/// /proc/net/dev.
double network_bytes(std::string const& text);

} // namespace lockstep
