#pragma once

#include "base/clock.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::monitor {

/// One line at the foot of a terminal that is drawn again in place, a few times per second.
class ProgressBar {
  public:
    /// A bar that is not shown does nothing.
    explicit ProgressBar(bool shown) : shown_(shown) {}

    bool shown() const noexcept { return shown_; }
    /// `done` of `all`, followed by as many of `words`, in order, as there is room for; drawn at
    /// most ten times per second.
    void draw(std::int64_t done, std::int64_t all, std::vector<std::string> const& words);
    /// Removes the bar, so that a line can be written.
    void clear();

  private:
    bool shown_;
    bool drawn_ = false;
    Stopwatch since_drawn_;
};

} // namespace lockstep::monitor
