#pragma once

#include <string>
#include <termios.h>
#include <vector>

namespace lockstep::report {

/// The terminal while a picture is redrawn on it again and again: its alternate screen, without a
/// cursor, keys read one by one. Everything is restored when the object is destroyed, also when a
/// signal ends the program. One at a time.
class Screen {
  public:
    Screen();
    Screen(Screen const&) = delete;
    Screen& operator=(Screen const&) = delete;
    ~Screen();

    /// False when the terminal is gone.
    bool draw(std::vector<std::string> const& lines) const;

    enum class Wish { nothing, redraw, leave };
    /// Waits for a key, a signal, a change of the window's size, or the timeout.
    ///
    /// Units  seconds
    Wish wait(double seconds);

  private:
    void enter();
    void leave();

    bool has_keys_ = false;
    termios keys_before_{};
};

} // namespace lockstep::report
