#pragma once

#include <cstddef>
#include <span>

namespace lockstep::data {

/// Decompresses zlib data (RFC 1950) whose decompressed size is known: that of `into`.
///
/// Returns  false when `stored` decompresses to another number of bytes, or is damaged
bool inflate_into(std::span<std::byte const> stored, std::span<std::byte> into);

} // namespace lockstep::data
