#include "time_text.hpp"

#include "base/number.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace lockstep::import {

namespace {

/// Takes what is written from a text's front.
class Front {
  public:
    explicit Front(std::string_view text) : rest_(text) {}

    bool is_at_end() const { return rest_.empty(); }

    bool take(char c) {
        bool const found = rest_.starts_with(c);
        rest_.remove_prefix(found ? 1 : 0);
        return found;
    }
    /// A whole number of `min` to `max` digits, up to `limit`.
    std::optional<int> number(std::size_t min, std::size_t max, int limit) {
        auto const digits =
            static_cast<std::size_t>(std::ranges::find_if_not(rest_, is_digit) - rest_.begin());
        if (digits < min || digits > max) {
            return std::nullopt;
        }
        auto const value = number_of<int>(take_front(digits));
        return value && *value <= limit ? value : std::nullopt;
    }
    /// ".75", or nothing, which is 0.
    std::optional<double> fraction() {
        if (!rest_.starts_with('.')) {
            return 0.0;
        }
        auto const digits = std::ranges::find_if_not(rest_.substr(1), is_digit);
        auto const text = take_front(static_cast<std::size_t>(digits - rest_.begin()));
        return text.size() > 1 ? number_of<double>(text) : std::nullopt;
    }

  private:
    static bool is_digit(char c) { return c >= '0' && c <= '9'; }
    std::string_view take_front(std::size_t count) {
        auto const front = rest_.substr(0, count);
        rest_.remove_prefix(count);
        return front;
    }

    std::string_view rest_;
};

/// Seconds east of UTC; 0 where none is written.
std::optional<double> offset(Front& front) {
    if (front.is_at_end()) {
        return 0.0;
    }
    front.take(' ');
    if (front.take('Z')) {
        return 0.0;
    }
    double const sign = front.take('+') ? 1 : front.take('-') ? -1 : 0;
    std::optional<int> hours;
    std::optional<int> minutes;
    if (auto const both = front.number(4, 4, 2359)) {
        hours = *both / 100;
        minutes = *both % 100;
    } else if ((hours = front.number(2, 2, 23))) {
        minutes = front.take(':') ? front.number(2, 2, 59) : 0; // PostgreSQL writes whole hours
    }
    if (sign == 0 || !hours || !minutes || *minutes > 59) {
        return std::nullopt;
    }
    return sign * (*hours * 60 + *minutes) * 60;
}

std::optional<double> date(Front& front) {
    auto const year = front.number(4, 4, 9999);
    bool const months = front.take('-');
    auto const month = front.number(1, 2, 12);
    bool const days = front.take('-');
    auto const day = front.number(1, 2, 31);
    if (!year || !months || !month || !days || !day) {
        return std::nullopt;
    }
    std::chrono::year_month_day const date{std::chrono::year(*year),
                                           std::chrono::month(static_cast<unsigned>(*month)),
                                           std::chrono::day(static_cast<unsigned>(*day))};
    if (!date.ok()) {
        return std::nullopt;
    }
    return static_cast<double>(std::chrono::sys_days(date).time_since_epoch().count()) * 86400;
}

/// A leap second is the 60th.
std::optional<double> clock(Front& front) {
    auto const hour = front.number(1, 2, 23);
    bool const minutes = front.take(':');
    auto const minute = front.number(1, 2, 59);
    if (!hour || !minutes || !minute) {
        return std::nullopt;
    }
    double const whole = (*hour * 60 + *minute) * 60;
    if (!front.take(':')) {
        return whole;
    }
    auto const second = front.number(1, 2, 60);
    auto const fraction = front.fraction();
    return second && fraction ? std::optional(whole + *second + *fraction) : std::nullopt;
}

} // namespace

std::optional<double> time_of(std::string_view text) {
    if (auto const value = number_of<double>(text)) {
        return std::isfinite(*value) ? value : std::nullopt;
    }
    Front front(text);
    auto const day = date(front);
    if (!day || front.is_at_end()) {
        return day;
    }
    bool const follows = front.take(' ') || front.take('T');
    auto const of_day = follows ? clock(front) : std::nullopt;
    auto const east = of_day ? offset(front) : std::nullopt;
    return east && front.is_at_end() ? std::optional(*day + *of_day - *east) : std::nullopt;
}

} // namespace lockstep::import
