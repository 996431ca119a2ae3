#include "base/page_columns.hpp"

#include "base/environment.hpp"

#include <algorithm>
#include <sys/ioctl.h>
#include <unistd.h>

namespace lockstep {

namespace {

constexpr std::size_t min_columns = 40;
constexpr std::size_t max_columns = 100; ///< longer lines are hard to read
constexpr std::size_t usual_columns = 80;

} // namespace

std::size_t page_columns() {
    if (auto const told = environment_number<std::int64_t>("COLUMNS"); told && *told > 0) {
        return std::max(static_cast<std::size_t>(*told), min_columns);
    }
    winsize found{};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &found) != 0 || found.ws_col == 0) {
        return usual_columns;
    }
    return std::clamp<std::size_t>(found.ws_col, min_columns, max_columns);
}

} // namespace lockstep
