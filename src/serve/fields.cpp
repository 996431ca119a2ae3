#include "fields.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace lockstep::serve {

namespace {

/// Goes through a line from its first letter to its last.
class Cursor {
  public:
    explicit Cursor(std::string_view line) : at_(line.data()), end_(line.data() + line.size()) {}

    bool take(char letter) {
        skip_blanks();
        if (at_ == end_ || *at_ != letter) {
            return false;
        }
        ++at_;
        return true;
    }
    bool is_over() {
        skip_blanks();
        return at_ == end_;
    }
    bool take_text(std::string_view& text) {
        if (!take('"')) {
            return false;
        }
        auto const* const first = at_;
        while (at_ != end_ && *at_ != '"' && *at_ != '\\' &&
               static_cast<unsigned char>(*at_) >= 0x20) {
            ++at_;
        }
        text = {first, static_cast<std::size_t>(at_ - first)};
        return at_ != end_ && *at_++ == '"';
    }
    bool take_value(Field& field) {
        skip_blanks();
        if (at_ == end_) {
            return false;
        }
        auto const* const first = at_;
        bool const taken = take_any(field);
        field.value = {first, static_cast<std::size_t>(at_ - first)};
        return taken;
    }

  private:
    bool take_any(Field& field) {
        switch (*at_) {
        case '"':
            field.kind = Field::Kind::text;
            return take_text(field.text);
        case 't':
            return take_word("true", Field::Kind::truth, 1, field);
        case 'f':
            return take_word("false", Field::Kind::truth, 0, field);
        case 'n':
            return take_word("null", Field::Kind::null, 0, field);
        default:
            return take_digits(field);
        }
    }
    void skip_blanks() {
        while (at_ != end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\r')) {
            ++at_;
        }
    }
    bool take_word(std::string_view word, Field::Kind kind, double number, Field& field) {
        if (!std::string_view(at_, static_cast<std::size_t>(end_ - at_)).starts_with(word)) {
            return false;
        }
        at_ += word.size();
        field.kind = kind;
        field.number = number;
        return true;
    }
    bool take_digits(Field& field) {
        std::string_view rest(at_, static_cast<std::size_t>(end_ - at_));
        field.kind = Field::Kind::number;
        bool const taken = take_number(rest, field.number);
        at_ = rest.data();
        return taken;
    }

    char const* at_;
    char const* end_;
};

constexpr int max_digits = 19; ///< that a whole number of 64 bits holds

/// Powers of ten that are exact.
constexpr double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                           1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

bool is_digit(char letter) {
    return letter >= '0' && letter <= '9';
}

/// The eight letters at `at`, the first one lowest.
std::uint64_t eight_letters(char const* at) {
    std::uint64_t letters = 0;
    std::memcpy(&letters, at, sizeof letters);
    return letters;
}

bool are_digits(std::uint64_t letters) {
    constexpr std::uint64_t high = 0xF0F0F0F0F0F0F0F0;
    constexpr std::uint64_t zeros = 0x3030303030303030;
    return (letters & high) == zeros && ((letters + 0x0606060606060606) & high) == zeros;
}

/// The number that eight digits are: pairs of neighbours are joined, then pairs of these, and so
/// on.
std::uint64_t joined(std::uint64_t digits) {
    digits -= 0x3030303030303030;
    digits = (digits * 10 + (digits >> 8)) & 0x00FF00FF00FF00FF;
    digits = (digits * 100 + (digits >> 16)) & 0x0000FFFF0000FFFF;
    return (digits * 10000 + (digits >> 32)) & 0xFFFFFFFF;
}

/// Appends the digits at `at` to `number`; how many there were.
int take_run_of_digits(char const*& at, char const* end, std::uint64_t& number) {
    auto const* const first = at;
    if constexpr (std::endian::native == std::endian::little) {
        while (end - at >= 8 && are_digits(eight_letters(at))) {
            number = number * 100000000 + joined(eight_letters(at));
            at += 8;
        }
    }
    for (; at != end && is_digit(*at); ++at) {
        number = number * 10 + static_cast<std::uint64_t>(*at - '0');
    }
    return static_cast<int>(std::min<std::ptrdiff_t>(at - first, max_digits + 1));
}

/// Any number, at a third of the speed.
bool take_any_number(std::string_view& text, double& number) {
    auto const [after, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (failure != std::errc{}) {
        return false;
    }
    text.remove_prefix(static_cast<std::size_t>(after - text.data()));
    return true;
}

} // namespace

bool flat_fields(std::string_view line, std::vector<Field>& into) {
    into.clear();
    Cursor cursor(line);
    if (!cursor.take('{')) {
        return false;
    }
    do {
        Field field;
        if (!cursor.take_text(field.key) || !cursor.take(':') || !cursor.take_value(field)) {
            return false;
        }
        into.push_back(field);
    } while (cursor.take(','));
    return cursor.take('}') && cursor.is_over();
}

bool take_number(std::string_view& text, double& number) {
    auto const* at = text.data();
    auto const* const end = at + text.size();
    bool const negative = at != end && *at == '-';
    at += negative ? 1 : 0;
    if (at == end || !is_digit(*at)) {
        return false;
    }
    std::uint64_t digits = 0;
    int count = take_run_of_digits(at, end, digits);
    int after_point = 0;
    if (at != end && *at == '.') {
        ++at;
        after_point = take_run_of_digits(at, end, digits);
        count += after_point;
    }
    if (count > max_digits || (at != end && (*at == 'e' || *at == 'E'))) {
        return take_any_number(text, number);
    }
    auto const size = static_cast<double>(digits) / tens[after_point];
    number = negative ? -size : size;
    text.remove_prefix(static_cast<std::size_t>(at - text.data()));
    return true;
}

} // namespace lockstep::serve
