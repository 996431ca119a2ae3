#include "monitor/progress_bar.hpp"

#include "base/text.hpp"
#include "monitor/terminal.hpp"

#include <algorithm>
#include <cstdio>
#include <string>

namespace lockstep::monitor {

namespace {

constexpr double redraw_s = 0.1;
constexpr std::int64_t bar_width = 24;

} // namespace

void ProgressBar::draw(std::int64_t done, std::int64_t all, std::vector<std::string> const& words) {
    if (!shown_ || (drawn_ && done < all && since_drawn_.seconds() < redraw_s)) {
        return;
    }
    since_drawn_.restart();
    drawn_ = true;
    auto const room = terminal_size().columns - 1; // the last column would begin a new line
    auto const width = std::min<std::int64_t>(bar_width, static_cast<std::int64_t>(room / 5));
    auto const full = static_cast<std::size_t>(width * done / std::max<std::int64_t>(all, 1));
    auto line =
        cut(concat(std::string(full, '#'), std::string(static_cast<std::size_t>(width) - full, '.'),
                   " ", done, "/", all),
            room);
    for (auto const& word : words) {
        auto const longer = concat(line, "  ", word);
        line = columns_of(longer) <= room ? longer : line;
    }
    static_cast<void>(std::fputs(concat("\r\033[K", line).c_str(), stdout));
    static_cast<void>(std::fflush(stdout));
}

void ProgressBar::clear() {
    if (drawn_) {
        static_cast<void>(std::fputs("\r\033[K", stdout));
        static_cast<void>(std::fflush(stdout));
        drawn_ = false;
    }
}

} // namespace lockstep::monitor
