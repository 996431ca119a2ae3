#pragma once

namespace lockstep {

/// Whether it is a letter or a digit of ASCII, in every locale.
constexpr bool is_alphanumeric(char letter) noexcept {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
           (letter >= '0' && letter <= '9');
}

} // namespace lockstep
