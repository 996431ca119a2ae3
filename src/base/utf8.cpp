#include "base/utf8.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <array>

namespace lockstep {

namespace {

/// Bytes of a character that begins with this one; 0: none does.
std::size_t utf8_length(unsigned char lead) {
    if (lead < 0x80) {
        return 1;
    }
    if (lead >= 0xc2 && lead < 0xe0) {
        return 2;
    }
    if (lead >= 0xe0 && lead < 0xf0) {
        return 3;
    }
    return lead >= 0xf0 && lead < 0xf5 ? 4 : 0;
}

} // namespace

Utf8Character first_character(std::string_view text) {
    auto const lead = static_cast<unsigned char>(text.empty() ? '\xff' : text[0]);
    auto const length = utf8_length(lead);
    if (length == 0 || length > text.size()) {
        return {};
    }
    char32_t point = length == 1 ? lead : lead & (0x7fU >> length);
    for (auto const letter : text.substr(1, length - 1)) {
        auto const next = static_cast<unsigned char>(letter);
        if ((next & 0xc0U) != 0x80U) {
            return {};
        }
        point = (point << 6U) | (next & 0x3fU);
    }
    // A character has one form: the shortest, and none of those that pairs of UTF-16 are made of.
    constexpr std::array<char32_t, 5> min{0, 0, 0x80, 0x800, 0x10000};
    bool const valid =
        point >= min[length] && point <= 0x10ffff && (point < 0xd800 || point > 0xdfff);
    return valid ? Utf8Character{point, length} : Utf8Character{};
}

std::u32string decoded(std::string_view text, std::string const& from) {
    std::u32string points;
    for (std::size_t at = 0; at < text.size();) {
        auto const character = first_character(text.substr(at));
        if (character.bytes == 0) {
            throw Error(ExitCode::data, {from, concat("its text is not UTF-8 at byte ", at),
                                         "Convert the text to UTF-8, for instance with iconv"});
        }
        points.push_back(character.point);
        at += character.bytes;
    }
    return points;
}

bool is_utf8(std::string_view text) {
    while (!text.empty()) {
        auto const bytes = first_character(text).bytes;
        if (bytes == 0) {
            return false;
        }
        text.remove_prefix(bytes);
    }
    return true;
}

std::string encoded(char32_t point) {
    auto const tail = [&](int shift) {
        return static_cast<char>(0x80U | ((point >> static_cast<unsigned>(shift)) & 0x3fU));
    };
    if (point < 0x80) {
        return {static_cast<char>(point)};
    }
    if (point < 0x800) {
        return {static_cast<char>(0xc0U | (point >> 6U)), tail(0)};
    }
    if (point < 0x10000) {
        return {static_cast<char>(0xe0U | (point >> 12U)), tail(6), tail(0)};
    }
    return {static_cast<char>(0xf0U | (point >> 18U)), tail(12), tail(6), tail(0)};
}

} // namespace lockstep
