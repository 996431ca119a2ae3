#include "report/watch.hpp"

#include "base/escaped.hpp"
#include "base/lease.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iostream>

#include "screen.hpp"

namespace lockstep::report {

namespace {

/// Seconds since one of the files that a living run touches was written; rank 0 renews `lease` even
/// while nothing is logged.
double silence_s(std::filesystem::path const& metrics) {
    using namespace std::filesystem;
    double min = HUGE_VAL;
    for (auto const& file : {metrics, metrics.parent_path() / Lease::file_name}) {
        std::error_code failure;
        auto const written = last_write_time(file, failure);
        if (!failure) {
            std::chrono::duration<double> const age = file_time_type::clock::now() - written;
            min = std::min(min, std::max(age.count(), 0.0));
        }
    }
    return min;
}

bool has_ended(monitor::RunRecords const& run) {
    return !run.attempts.empty() && !run.attempts.back().reason.empty();
}

/// False where the file is not there: the run waits in a queue, or starts over just now, and what
/// was known is shown on.
bool read_on(monitor::RunRecords& run) {
    try {
        run.read();
        return true;
    } catch (Error const&) {
        return false;
    }
}

/// Waits for the run's first record; false when the user does not.
bool begins(monitor::RunRecords& run, double interval_s) {
    if (read_on(run)) {
        return true;
    }
    Screen screen;
    do {
        auto const columns = monitor::terminal_size().columns;
        auto const path = escaped_line(run.path().string());
        if (!screen.draw(
                {monitor::cut(concat(escaped_line(run.name()), "  has not begun yet"), columns),
                 monitor::cut(concat("waiting for ", path), columns),
                 monitor::cut("q quits", columns)}) ||
            screen.wait(interval_s) == Screen::Wish::leave) {
            return false;
        }
    } while (!read_on(run));
    return true;
}

void follow(monitor::RunRecords& run, double interval_s) {
    Screen screen;
    while (!has_ended(run)) {
        Looks const looks{.size = monitor::terminal_size(),
                          .paint = monitor::Paint(monitor::colours_welcome()),
                          .utf8 = monitor::utf8_welcome(),
                          .full = true};
        if (!screen.draw(dashboard(run, silence_s(run.path()), looks))) {
            return;
        }
        if (screen.wait(interval_s) == Screen::Wish::leave) {
            return;
        }
        read_on(run);
    }
}

} // namespace

void watch(std::filesystem::path const& path, WatchOptions const& options) {
    monitor::RunRecords run(path);
    bool const terminal = monitor::on_terminal();
    bool const live = terminal && !options.once;
    if (live && !begins(run, options.interval_s)) {
        return;
    }
    run.read();
    run.require_of_a_run(path);
    if (live && !has_ended(run)) {
        follow(run, options.interval_s);
    }
    auto size = terminal ? monitor::terminal_size() : monitor::TerminalSize{};
    bool const chart = terminal && size.rows > 1;
    size.rows -= chart ? 1 : 0; // the prompt's
    Looks const looks{.size = size,
                      .paint = monitor::Paint(monitor::colours_welcome()),
                      .utf8 = monitor::utf8_welcome(),
                      .full = chart};
    for (auto const& line : dashboard(run, silence_s(run.path()), looks)) {
        write_obeyed(std::cout, line + "\n");
    }
    std::cout << std::flush;
}

} // namespace lockstep::report
