#include "base/utc_time.hpp"

#include <charconv>
#include <cstdint>
#include <limits>

namespace lockstep {

namespace {

/// The number that `digits` letters from `at` on are; -1 where they are not digits.
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

} // namespace lockstep
