#include "text/byte_letters.hpp"

#include "base/utf8.hpp"

#include <array>
#include <cstdint>
#include <map>

namespace lockstep::text {

namespace {

using Letters = std::array<std::string, 256>;

bool stands_for_itself(unsigned byte) {
    return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

Letters const& letters() {
    static Letters const all = [] {
        Letters made;
        char32_t next = 0x100;
        for (unsigned byte = 0; byte < made.size(); ++byte) {
            made[byte] = encoded(stands_for_itself(byte) ? byte : next++);
        }
        return made;
    }();
    return all;
}

} // namespace

std::string letters_of(std::string_view bytes) {
    std::string text;
    for (auto const byte : bytes) {
        text += letters()[static_cast<unsigned char>(byte)];
    }
    return text;
}

std::string bytes_of_letters(std::string_view text) {
    static std::map<std::string, char, std::less<>> const bytes = [] {
        std::map<std::string, char, std::less<>> made;
        for (unsigned byte = 0; byte < letters().size(); ++byte) {
            made.emplace(letters()[byte], static_cast<char>(byte));
        }
        return made;
    }();
    std::string result;
    for (std::size_t at = 0; at < text.size();) {
        auto const length = static_cast<unsigned char>(text[at]) < 0x80 ? 1U : 2U;
        auto const found = bytes.find(text.substr(at, length));
        if (found == bytes.end()) {
            return std::string(text);
        }
        result += found->second;
        at += length;
    }
    return result;
}

} // namespace lockstep::text
