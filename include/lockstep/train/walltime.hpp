#pragma once

#include "lockstep/base/clock.hpp"

#include <algorithm>
#include <optional>

namespace lockstep::train {

/// Says when a run has to begin its last checkpoint, so that it is there before the job's time is
/// over: twice the longest checkpoint seen, the slowest step seen, and some seconds for ranks,
/// launcher and job script to leave are kept in reserve. Rank 0's clock decides for all.
class Walltime {
  public:
    /// `seconds_left` from now on; nothing: there is no limit.
    explicit Walltime(std::optional<double> seconds_left = {}) : seconds_left_(seconds_left) {}

    void checkpoint_took(double seconds) { checkpoint_s_ = std::max(checkpoint_s_, seconds); }
    void step_took(double seconds) { step_s_ = std::max(step_s_, seconds); }

    double reserve() const { return 2 * checkpoint_s_ + step_s_ + leaving_s; }
    bool over() const { return seconds_left_ && watch_.seconds() + reserve() >= *seconds_left_; }

  private:
    static constexpr double leaving_s = 5;

    std::optional<double> seconds_left_;
    Stopwatch watch_;
    double checkpoint_s_ = 0;
    double step_s_ = 0;
};

} // namespace lockstep::train
