#include "lockstep/monitor/progress_bar.hpp"

#include "lockstep/base/text.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <sys/ioctl.h>
#include <system_error>
#include <unistd.h>

namespace lockstep::monitor {

namespace {

constexpr double redraw_s = 0.1;
constexpr std::int64_t bar_width = 24;

std::size_t terminal_width() {
    winsize size{};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        return size.ws_col;
    }
    return 80;
}

} // namespace

bool on_terminal() {
    if (::isatty(STDOUT_FILENO) != 1) {
        return false;
    }
    // mpirun gives its ranks a terminal of their own and passes on what they write: what counts
    // then is where mpirun writes to.
    if (std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr) {
        return true;
    }
    std::error_code failure;
    auto const target =
        std::filesystem::read_symlink("/proc/" + std::to_string(::getppid()) + "/fd/1", failure);
    return !failure && target.string().starts_with("/dev/pts/");
}

void ProgressBar::draw(std::int64_t done, std::int64_t all, std::string const& text) {
    if (!shown_ || (drawn_ && done < all && since_drawn_.seconds() < redraw_s)) {
        return;
    }
    since_drawn_.restart();
    drawn_ = true;
    auto const full = static_cast<std::size_t>(bar_width * done / std::max<std::int64_t>(all, 1));
    auto line =
        concat(std::string(full, '#'), std::string(static_cast<std::size_t>(bar_width) - full, '.'),
               " ", done, "/", all, "  ", text);
    line.resize(std::min(line.size(), terminal_width() - 1));
    std::fputs(concat("\r\033[K", line).c_str(), stdout);
    std::fflush(stdout);
}

void ProgressBar::clear() {
    if (drawn_) {
        std::fputs("\r\033[K", stdout);
        std::fflush(stdout);
        drawn_ = false;
    }
}

} // namespace lockstep::monitor
