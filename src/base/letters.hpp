#pragma once

namespace lockstep {

/// Whether it is a letter or a digit of ASCII, in every locale.
constexpr bool is_alphanumeric(char letter) noexcept {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
           (letter >= '0' && letter <= '9');
}

/// A letter of ASCII as a small one, in every locale; any other as it is.
constexpr char lower(char letter) noexcept {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

} // namespace lockstep
