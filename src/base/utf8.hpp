#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lockstep {

struct Utf8Character {
    char32_t point = 0;
    std::size_t bytes = 0; ///< 0: none
};

/// The character that a text begins with; none where it is empty, or begins with bytes that are no
/// UTF-8.
Utf8Character first_character(std::string_view text);

/// Text as code points. Throws Error 65 for a text that is not UTF-8, naming `from`
std::u32string decoded(std::string_view text, std::string const& from);

bool is_utf8(std::string_view text);

/// A code point as UTF-8.
std::string encoded(char32_t point);

} // namespace lockstep
