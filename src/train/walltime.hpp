#pragma once

#include "base/clock.hpp"
#include "lockstep/base/signals.hpp"

#include <algorithm>
#include <optional>

namespace lockstep::train {

/// Says when a run has to begin its last checkpoint, so that it is complete before the job's time
/// is over: twice the longest checkpoint seen, the slowest step seen, and some seconds for ranks,
/// launcher and job script to leave are kept in reserve. Rank 0's clock decides for all.
class Walltime {
  public:
    /// `left` is the time from now on, `whole` that from the job's start, in seconds; nothing: no
    /// limit.
    explicit Walltime(std::optional<double> left = {}, std::optional<double> whole = {})
        : left_(left), whole_(whole) {}

    void checkpoint_took(double seconds) { checkpoint_s_ = std::max(checkpoint_s_, seconds); }
    void step_took(double seconds) { step_s_ = std::max(step_s_, seconds); }

    /// The reason to leave: `walltime_over`, `job_too_short`, or 0 for none.
    int reason() const {
        auto const needed = watch_.seconds() + 2 * checkpoint_s_ + step_s_ + leaving_s;
        if (!left_ || needed < *left_) {
            return 0;
        }
        return whole_ && *whole_ < needed ? job_too_short : walltime_over;
    }

  private:
    static constexpr double leaving_s = 5;

    std::optional<double> left_;
    std::optional<double> whole_;
    Stopwatch watch_;
    double checkpoint_s_ = 0;
    double step_s_ = 0;
};

} // namespace lockstep::train
