#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace lockstep {

/// CRC-32C: Castagnoli's polynomial 0x1EDC6F41, bits reflected, as in iSCSI (RFC 3720, B.4).
std::uint32_t crc32c(std::span<std::byte const> bytes);

} // namespace lockstep
