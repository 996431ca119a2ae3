#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

namespace lockstep::train {

/// Finds the rank that the others wait for. Step times do not show it, since the sum of gradients
/// makes them equal on all ranks; the rank that comes last to that sum waits least in it.
class Stragglers {
  public:
    struct Report {
        int rank = -1;     ///< -1: none that matters
        double late_s = 0; ///< in the mean over steps, against the mean of the others
        bool stays = false;
    };

    /// A rank matters when it is late by more than this share of the step.
    static constexpr double min_share = 0.1;
    /// It stays when it is the one in this share of the last reports, of which there are so many at
    /// least, over so many steps. Not in all of them: any host has a slow moment now and then.
    static constexpr double staying_share = 0.8;
    static constexpr std::size_t min_reports = 3;
    static constexpr std::int64_t min_steps = 20;

    /// Shape  waited_s [ranks]
    void add(std::span<double const> waited_s, double step_s);

    /// Of the steps since the last report. `stays` is said once of each rank.
    Report report();

  private:
    struct Reported {
        int rank = -1;
        std::int64_t steps = 0;
    };

    /// Keeps the last reports that `staying_share` is of. Returns  whether `rank` is in so many.
    bool stays(int rank);

    std::vector<double> waited_s_; ///< sums over steps, by rank
    double step_s_ = 0;
    std::int64_t steps_ = 0;
    std::deque<Reported> last_; ///< reports, the newest at the back
    std::vector<bool> told_;
};

} // namespace lockstep::train
