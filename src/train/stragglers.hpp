#pragma once

#include <cstdint>
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
    /// It stays when it is the same one in so many reports over so many steps.
    static constexpr int min_reports = 3;
    static constexpr std::int64_t min_steps = 20;

    /// Shape  waited_s [ranks]
    void add(std::span<double const> waited_s, double step_s);

    /// Of the steps since the last report. `stays` is said once of each rank.
    Report report();

  private:
    std::vector<double> waited_s_; ///< sums over steps, by rank
    double step_s_ = 0;
    std::int64_t steps_ = 0;
    int last_ = -1; ///< the straggler of the report before
    int reports_ = 0;
    std::int64_t reported_steps_ = 0;
    std::vector<bool> told_;
};

} // namespace lockstep::train
