#include "fields.hpp"

#include <charconv>
#include <cstdint>
#include <limits>

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
            return take_number(field);
        }
    }

  private:
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
    bool take_number(Field& field) {
        auto const* const digit = *at_ == '-' && at_ + 1 != end_ ? at_ + 1 : at_;
        if (*digit < '0' || *digit > '9') {
            return false;
        }
        auto const [after, failure] = std::from_chars(at_, end_, field.number);
        at_ = after;
        field.kind = Field::Kind::number;
        return failure == std::errc{};
    }

    char const* at_;
    char const* end_;
};

/// The number that `digits` letters from `at` on are; -1 where they are no digits.
int digits_at(std::string_view text, std::size_t at, std::size_t digits) {
    int value = 0;
    for (std::size_t i = at; i < at + digits; ++i) {
        if (text[i] < '0' || text[i] > '9') {
            return -1;
        }
        value = value * 10 + (text[i] - '0');
    }
    return value;
}

/// Days from 1970-01-01 to a date of the Gregorian calendar. Source: H. Hinnant, "chrono-Compatible
/// Low-Level Date Algorithms", days_from_civil.
std::int64_t days_since_1970(int year, int month, int day) {
    year -= month <= 2 ? 1 : 0;
    int const era = year / 400;
    int const year_of_era = year - era * 400;
    int const day_of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    int const day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return std::int64_t{era} * 146097 + day_of_era - 719468;
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

double utc_seconds(std::string_view text) {
    constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
    if (text.size() < 20 || text.back() != 'Z' || text[4] != '-' || text[7] != '-' ||
        text[10] != 'T' || text[13] != ':' || text[16] != ':') {
        return unknown;
    }
    int const year = digits_at(text, 0, 4);
    int const month = digits_at(text, 5, 2);
    int const day = digits_at(text, 8, 2);
    int const hour = digits_at(text, 11, 2);
    int const minute = digits_at(text, 14, 2);
    double second = 0;
    auto const* const end = text.data() + text.size() - 1;
    auto const [after, failure] = std::from_chars(text.data() + 17, end, second);
    if (year < 1 || month < 1 || month > 12 || day < 1 || day > 31 || hour < 0 || minute < 0 ||
        failure != std::errc{} || after != end || !(second >= 0 && second < 62)) {
        return unknown;
    }
    auto const minutes = days_since_1970(year, month, day) * 1440 + hour * 60 + minute;
    return static_cast<double>(minutes) * 60 + second;
}

} // namespace lockstep::serve
