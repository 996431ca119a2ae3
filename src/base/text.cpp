#include "base/text.hpp"

#include "base/letters.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <iterator>
#include <limits>
#include <numeric>

namespace lockstep {

namespace {

constexpr double joules_per_kwh = 3.6e6;

/// Writes the value of a part at the end of a text.
struct Append {
    fmt::memory_buffer& text;

    void operator()(std::string_view part) const { text.append(part); }
    void operator()(char letter) const { text.push_back(letter); }
    void operator()(double number) const {
        fmt::format_to(std::back_inserter(text), "{:g}", number);
    }
    void operator()(void const* address) const {
        fmt::format_to(std::back_inserter(text), "{}", address);
    }
    void operator()(std::integral auto number) const {
        text.append(std::string_view(fmt::format_int(number).c_str()));
    }
};

} // namespace

std::string joined_parts(std::initializer_list<TextPart> parts) {
    fmt::memory_buffer text;
    for (auto const& part : parts) {
        std::visit(Append{text}, part.value_);
    }
    return fmt::to_string(text);
}

std::string fixed(double value, int digits) {
    return std::isnan(value) ? "nan" : fmt::format("{:.{}f}", value, digits);
}

std::string significant(double value, int digits) {
    return fmt::format("{:.{}g}", value, digits);
}

std::string zero_padded(std::int64_t number, int width) {
    return fmt::format("{:0{}}", number, width);
}

std::string bytes_text(std::uint64_t bytes) {
    constexpr std::array<char const*, 6> units{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    auto value = static_cast<double>(bytes);
    std::size_t unit = 0;
    while (value >= 1024 && unit + 1 < units.size()) {
        value /= 1024;
        ++unit;
    }
    return concat(fixed(value, unit == 0 ? 0 : 1), " ", units[unit]);
}

std::string count_text(std::int64_t value) {
    auto const digits = std::to_string(value < 0 ? -value : value);
    std::string text;
    text.append(value < 0 ? 1 : 0, '-');
    for (std::size_t i = 0; i < digits.size(); ++i) {
        if (i > 0 && (digits.size() - i) % 3 == 0) {
            text.push_back(',');
        }
        text.push_back(digits[i]);
    }
    return text;
}

std::string count_text(std::int64_t value, std::string_view noun) {
    return concat(count_text(value), " ", noun, value == 1 ? "" : "s");
}

std::string ranks_text(std::vector<std::int64_t> const& ranks) {
    constexpr std::size_t max_named = 8;
    auto text = std::string(ranks.size() == 1 ? "rank " : "ranks ");
    for (std::size_t at = 0; at < std::min(ranks.size(), max_named); ++at) {
        text += concat(at == 0 ? "" : ", ", ranks[at]);
    }
    return ranks.size() > max_named ? concat(text, " and ", ranks.size() - max_named, " more")
                                    : text;
}

std::string first_line(std::string_view text) {
    return std::string(text.substr(0, text.find('\n')));
}

std::string duration_text(double seconds) {
    if (seconds > 0 && seconds < 0.0995) {
        return concat(fixed(1e3 * seconds, seconds < 0.00995 ? 1 : 0), " ms");
    }
    if (seconds < 60) {
        return concat(fixed(seconds, 1), " s");
    }
    auto const whole = static_cast<std::int64_t>(std::llround(seconds));
    if (whole < 3600) {
        return concat(whole / 60, " min ", zero_padded(whole % 60, 2), " s");
    }
    return concat(whole / 3600, " h ", zero_padded(whole % 3600 / 60, 2), " min");
}

std::string energy_text(double joules) {
    return std::isfinite(joules) ? concat(fixed(joules / joules_per_kwh, 4), " kWh")
                                 : "not measured";
}

std::string carbon_text(double joules, double grams_per_kwh) {
    return std::isfinite(joules) ? concat(fixed(joules / joules_per_kwh * grams_per_kwh, 2), " g")
                                 : "not measured";
}

std::string markdown_row(std::vector<std::string> const& cells) {
    return concat("| ", joined(cells, " | "), " |\n");
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            std::size_t const substitute = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
            diagonal = row[j];
            row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
        }
    }
    return row[b.size()];
}

namespace {

std::string small(std::string_view text) {
    std::string letters(text);
    std::ranges::transform(letters, letters.begin(), lower);
    return letters;
}

} // namespace

std::string nearest_name(std::string_view name, std::vector<std::string> const& candidates) {
    std::string best;
    auto const apart = [&](std::string const& candidate) {
        return std::max(name.size(), candidate.size()) - std::min(name.size(), candidate.size());
    };
    // Of a third of its letters another name is not a slip any more; a common section does not
    // count.
    auto const max_slips = [&](std::string const& candidate) {
        auto const section = name.substr(0, name.find('.') + 1);
        auto const letters = name.size() - (candidate.starts_with(section) ? section.size() : 0);
        return letters < 4 ? 1 : std::max<std::size_t>(2, letters / 3);
    };
    auto best_distance = std::numeric_limits<std::size_t>::max();
    for (auto const& candidate : candidates) {
        auto const distance = edit_distance(small(name), small(candidate));
        if (distance > max_slips(candidate)) {
            continue;
        }
        // Of equally near ones that of the same length: a wrong letter is likelier than one more.
        bool const likelier =
            distance == best_distance && !best.empty() && apart(candidate) < apart(best);
        if (distance < best_distance || likelier) {
            best_distance = distance;
            best = candidate;
        }
    }
    return best;
}

std::string_view trimmed(std::string_view text) {
    constexpr std::string_view blanks = " \t\r\n";
    auto const first = text.find_first_not_of(blanks);
    if (first == std::string_view::npos) {
        return {};
    }
    return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

std::vector<std::string> split(std::string_view text, char separator) {
    std::vector<std::string> parts;
    if (trimmed(text).empty()) {
        return parts;
    }
    std::size_t begin = 0;
    while (true) {
        auto const end = text.find(separator, begin);
        parts.emplace_back(trimmed(text.substr(begin, end - begin)));
        if (end == std::string_view::npos) {
            return parts;
        }
        begin = end + 1;
    }
}

std::string joined(std::vector<std::string> const& parts, std::string_view separator) {
    std::string text;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        text += i == 0 ? "" : separator;
        text += parts[i];
    }
    return text;
}

std::string list_text(std::vector<std::string> const& names, std::string_view last) {
    if (names.size() < 2) {
        return joined(names, "");
    }
    return concat(joined({names.begin(), names.end() - 1}, ", "), " ", last, " ", names.back());
}

} // namespace lockstep
