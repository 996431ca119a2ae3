#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// Bytes as hexadecimal digits, two each, 0-9 and a-f.
std::string hex_text(std::span<std::uint8_t const> bytes);

/// The bytes of such digits; nothing where the text is anything else.
std::optional<std::vector<std::uint8_t>> octets_of(std::string_view hex);

} // namespace lockstep
