#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

namespace lockstep::monitor {

/// How fast a run's last steps were. A change of pace, such as that of layers that are thawed,
/// counts in full after as many steps as are kept, and nothing of before it is left then.
class RecentPace {
  public:
    void add(std::int64_t samples, double seconds) {
        if (steps_ == 1) { // the first step warms up, and says little of the others
            kept_.clear();
        }
        ++steps_;
        kept_.push_back({static_cast<double>(samples), seconds});
        if (kept_.size() > max_steps) {
            kept_.pop_front();
        }
    }

    /// Whether it tells more than how long the first step took.
    bool is_known() const noexcept { return steps_ > 1; }
    double samples_per_s() const { return sum().samples / sum().seconds; }
    double seconds_per_step() const { return sum().seconds / static_cast<double>(kept_.size()); }

  private:
    static constexpr std::size_t max_steps = 20;

    struct Kept {
        double samples = 0;
        double seconds = 0;
    };

    Kept sum() const {
        Kept sum;
        for (auto const& each : kept_) {
            sum.samples += each.samples;
            sum.seconds += each.seconds;
        }
        return sum;
    }

    std::deque<Kept> kept_;
    std::int64_t steps_ = 0;
};

} // namespace lockstep::monitor
