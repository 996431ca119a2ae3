#pragma once

#include <cstddef>
#include <span>

namespace lockstep::data {

/// Undoes zlib's compression (RFC 1950) of bytes whose number is known.
///
/// Returns  false when `stored` makes another number of bytes, or is damaged
bool inflate_into(std::span<std::byte const> stored, std::span<std::byte> into);

} // namespace lockstep::data
