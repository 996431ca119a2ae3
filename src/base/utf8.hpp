#pragma once

#include <string>
#include <string_view>

namespace lockstep {

/// Text as code points. Throws Error 65 for a text that is not UTF-8, naming `from`
std::u32string decoded(std::string_view text, std::string const& from);

bool is_utf8(std::string_view text);

/// A code point as UTF-8.
std::string encoded(char32_t point);

} // namespace lockstep
