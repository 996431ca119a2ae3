#pragma once

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace lockstep {

/// A part of a text: text itself, a letter, a whole number, a truth as 1 or 0, a real number
/// with six digits, or an address. Points at the text that it was made of.
class TextPart {
  public:
    TextPart(std::string_view text) : value_(text) {}
    TextPart(std::string const& text) : value_(std::string_view(text)) {}
    TextPart(char const* text) : value_(std::string_view(text)) {}
    TextPart(char letter) : value_(letter) {}
    TextPart(std::signed_integral auto number) : value_(static_cast<long long>(number)) {}
    TextPart(std::unsigned_integral auto number)
        : value_(static_cast<unsigned long long>(number)) {}
    TextPart(std::floating_point auto number) : value_(static_cast<double>(number)) {}
    TextPart(void const* address) : value_(address) {}
    TextPart(std::filesystem::path const& path) = delete; ///< say path.string()

  private:
    friend std::string joined_parts(std::initializer_list<TextPart> parts);

    std::variant<std::string_view, char, long long, unsigned long long, double, void const*> value_;
};

std::string joined_parts(std::initializer_list<TextPart> parts);

/// Joins parts into one string.
template <class... Parts>
std::string concat(Parts const&... parts) {
    return joined_parts({TextPart(parts)...});
}

/// ASCII's unit separator, between the fields of a text that no person writes.
constexpr char unit_separator = '\x1f';

/// `value` with `digits` places after the point.
std::string fixed(double value, int digits);

/// `value` with at most `digits` significant digits, as printf's %g has it.
std::string significant(double value, int digits);

/// A whole number, filled up with zeros to `width` characters: "0042".
std::string zero_padded(std::int64_t number, int width);

/// A size in bytes as people read it: "1.4 MiB".
std::string bytes_text(std::uint64_t bytes);

/// A whole number with thousands separated: "60,000".
std::string count_text(std::int64_t value);

/// A number of things, with thousands separated: "1 sample", "60,000 samples".
std::string count_text(std::int64_t value, std::string_view noun);

/// The first line of an error text: in LibTorch's, a stack of calls follows.
std::string first_line(std::string_view text);

/// A number of things: "1 rank", "3 ranks". For nouns whose plural takes an s.
template <class Number>
std::string amount_of(Number number, std::string_view noun) {
    return concat(number, " ", noun, number == 1 ? "" : "s");
}

/// Ranks by their numbers, of which eight are named: "rank 3", "ranks 0, 1, 2".
std::string ranks_text(std::vector<std::int64_t> const& ranks);

template <std::integral Rank>
std::string ranks_text(std::vector<Rank> const& ranks) {
    return ranks_text(std::vector<std::int64_t>(ranks.begin(), ranks.end()));
}

/// A duration as people read it: "2 h 03 min", "4.2 s".
std::string duration_text(double seconds);

/// Energy in kWh: "0.0123 kWh"; "not measured" for what is not finite.
std::string energy_text(double joules);

/// The CO2 of this energy: "4.31 g"; "not measured" for what is not finite.
std::string carbon_text(double joules, double grams_per_kwh);

/// A row of a table in Markdown.
std::string markdown_row(std::vector<std::string> const& cells);

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

/// `name`, or, where it is taken, "name_2", "name_3" and so on: the first that is not.
template <std::predicate<std::string const&> Taken>
std::string untaken_name(std::string const& name, Taken is_taken) {
    auto found = name;
    for (int number = 2; is_taken(found); ++number) {
        found = concat(name, "_", number);
    }
    return found;
}

/// Names as a sentence lists them: "a", "a and b", "a, b and c"; with `last` as "or": "a, b or c".
std::string list_text(std::vector<std::string> const& names, std::string_view last = "and");

} // namespace lockstep
