#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace lockstep {

/// The number that the whole of `text` is; nothing if it is none, or one too large for the type.
template <class Number>
std::optional<Number> number_of(std::string_view text) {
    Number value{};
    auto const* const end = text.data() + text.size();
    auto const [stop, failure] = std::from_chars(text.data(), end, value);
    return failure == std::errc{} && stop == end ? std::optional(value) : std::nullopt;
}

} // namespace lockstep
