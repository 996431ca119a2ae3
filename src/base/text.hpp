#pragma once

#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// Joins anything that can be streamed into one string.
template <class... Parts>
std::string concat(Parts const&... parts) {
    std::ostringstream out;
    (out << ... << parts);
    return std::move(out).str();
}

/// ASCII's own, between the fields of a text that no person writes.
constexpr char unit_separator = '\x1f';

/// `value` with `digits` places after the point.
std::string fixed(double value, int digits);

/// A size in bytes as people read it: "1.4 MiB".
std::string bytes_text(std::uint64_t bytes);

/// A whole number with thousands separated: "60,000".
std::string count_text(std::int64_t value);

/// A duration as people read it: "2 h 03 min", "4.2 s".
std::string duration_text(double seconds);

/// Levenshtein distance, to find the name that was meant.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate nearest to `name`; empty when none is near enough to be what was meant.
std::string nearest_name(std::string_view name, std::vector<std::string> const& candidates);

/// `text` without blanks at either end.
std::string_view trimmed(std::string_view text);

/// The parts of `text` between `separator`s, trimmed; no parts for a blank text.
std::vector<std::string> split(std::string_view text, char separator);

/// The parts joined by `separator`.
std::string joined(std::vector<std::string> const& parts, std::string_view separator);

} // namespace lockstep
