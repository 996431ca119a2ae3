#include "base/hex_text.hpp"

#include <cstddef>
#include <utility>

namespace lockstep {

namespace {

constexpr std::string_view digits = "0123456789abcdef";

} // namespace

std::string hex_text(std::span<std::uint8_t const> bytes) {
    std::string text;
    for (auto const byte : bytes) {
        text += digits[byte >> 4];
        text += digits[byte & 15];
    }
    return text;
}

std::optional<std::vector<std::uint8_t>> octets_of(std::string_view hex) {
    std::vector<std::uint8_t> octets;
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
        auto const high = digits.find(hex[i]);
        auto const low = digits.find(hex[i + 1]);
        if (high == std::string_view::npos || low == std::string_view::npos) {
            return std::nullopt;
        }
        octets.push_back(static_cast<std::uint8_t>(high << 4 | low));
    }
    return hex.size() % 2 == 0 ? std::optional(std::move(octets)) : std::nullopt;
}

} // namespace lockstep
