#include "base/crc32c.hpp"

#include <array>

namespace lockstep {

namespace {

constexpr std::uint32_t reflected_polynomial = 0x82F63B78;

constexpr std::array<std::uint32_t, 256> make_table() {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
        auto rest = byte;
        for (int bit = 0; bit < 8; ++bit) {
            rest = (rest >> 1) ^ ((rest & 1) != 0 ? reflected_polynomial : 0);
        }
        table[byte] = rest;
    }
    return table;
}

constexpr auto table = make_table();

} // namespace

std::uint32_t crc32c(std::span<std::byte const> bytes) {
    std::uint32_t sum = 0xFFFFFFFF;
    for (auto const byte : bytes) {
        sum = (sum >> 8) ^ table[(sum ^ std::to_integer<std::uint32_t>(byte)) & 0xFF];
    }
    return ~sum;
}

} // namespace lockstep
