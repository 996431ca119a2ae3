#include "monitor/terminal.hpp"

#include "base/descriptor.hpp"
#include "base/environment.hpp"
#include "base/escaped.hpp"
#include "base/text.hpp"

#include <array>
#include <fcntl.h>
#include <filesystem>
#include <sys/ioctl.h>
#include <unistd.h>

namespace lockstep::monitor {

namespace {

/// Where mpirun, our parent, writes to; empty when there is no mpirun.
std::string output_of_mpirun() {
    if (!environment("OMPI_COMM_WORLD_SIZE")) {
        return {};
    }
    std::error_code failure;
    auto const target =
        std::filesystem::read_symlink(concat("/proc/", ::getppid(), "/fd/1"), failure);
    return failure ? std::string() : target.string();
}

bool size_of(int descriptor, TerminalSize& size) {
    winsize found{};
    if (::ioctl(descriptor, TIOCGWINSZ, &found) != 0 || found.ws_col == 0 || found.ws_row == 0) {
        return false;
    }
    size = {found.ws_col, found.ws_row};
    return true;
}

bool is_set(char const* name) {
    return !environment_text(name).empty();
}

/// The length of the escape sequence or letter that `text` begins with, and its columns.
struct Unit {
    std::size_t bytes = 1;
    std::size_t columns = 1;
};

Unit unit_at(std::string_view text) {
    if (text.starts_with("\033[")) {
        auto const end = text.find_first_of("mKHJ", 2);
        return {end == std::string_view::npos ? text.size() : end + 1, 0};
    }
    Unit unit;
    while (unit.bytes < text.size() && (static_cast<unsigned char>(text[unit.bytes]) >> 6) == 2) {
        ++unit.bytes;
    }
    return unit;
}

} // namespace

bool on_terminal() {
    if (environment("OMPI_COMM_WORLD_SIZE")) {
        return ::isatty(STDOUT_FILENO) == 1 && output_of_mpirun().starts_with("/dev/pts/");
    }
    return ::isatty(STDOUT_FILENO) == 1;
}

TerminalSize terminal_size() {
    TerminalSize size;
    auto const outer = output_of_mpirun();
    if (outer.starts_with("/dev/")) {
        Descriptor const terminal(
            ::open(outer.c_str(), O_RDONLY | O_NOCTTY | O_CLOEXEC | O_NONBLOCK));
        if (terminal.is_open() && size_of(terminal.get(), size)) {
            return size;
        }
    }
    size_of(STDOUT_FILENO, size);
    return size;
}

bool colours_welcome() {
    return on_terminal() && !is_set("NO_COLOR") && environment_text("TERM") != "dumb";
}

bool utf8_welcome() {
    for (char const* const name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
        if (is_set(name)) {
            auto const value = environment_text(name);
            return value.find("UTF-8") != value.npos || value.find("utf8") != value.npos;
        }
    }
    return false;
}

std::string Paint::operator()(Style style, std::string_view text) const {
    constexpr std::array<char const*, 9> codes{"0", "1", "2", "31", "32", "33", "34", "35", "36"};
    if (!on_ || style == Style::plain || text.empty()) {
        return escaped(text);
    }
    return concat("\033[", codes[static_cast<std::size_t>(style)], "m", escaped(text), "\033[0m");
}

std::size_t columns_of(std::string_view text) {
    std::size_t columns = 0;
    while (!text.empty()) {
        auto const unit = unit_at(text);
        columns += unit.columns;
        text.remove_prefix(unit.bytes);
    }
    return columns;
}

std::string cut(std::string_view text, std::size_t columns) {
    std::string all;
    while (!text.empty()) {
        auto const unit = unit_at(text);
        if (unit.columns <= columns) {
            all += text.substr(0, unit.bytes);
            columns -= unit.columns;
        } else {
            columns = 0;
        }
        text.remove_prefix(unit.bytes);
    }
    return all;
}

} // namespace lockstep::monitor
