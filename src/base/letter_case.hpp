#pragma once

#include <algorithm>
#include <cctype>
#include <string>

namespace lockstep {

/// A text with ASCII's capitals made small.
inline std::string lower_case(std::string text) {
    std::ranges::transform(text, text.begin(), [](unsigned char letter) {
        return static_cast<char>(std::tolower(letter));
    });
    return text;
}

/// A text with ASCII's small letters made capitals.
inline std::string upper_case(std::string text) {
    std::ranges::transform(text, text.begin(), [](unsigned char letter) {
        return static_cast<char>(std::toupper(letter));
    });
    return text;
}

} // namespace lockstep
