#pragma once

#include "lockstep/comm/communicator.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <set>

namespace lockstep::train {

/// How long ranks have waited for each other.
struct Waits {
    int ranks = 1;
    double sum_s = 0; ///< of all ranks
    double min_s = 0; ///< of the rank that waited least
    int min_rank = 0;
};

/// Summarises how long each rank has waited, to the microsecond.
///
/// Collective  over `world`
Waits waits_of_ranks(comm::Communicator const& world, double own_s);

/// Finds the rank that the others wait for. Step times do not show it, since the sum of gradients
/// makes them equal on all ranks; the rank that arrives last at that sum waits least in it.
class Stragglers {
  public:
    struct Report {
        int rank = -1;     ///< -1: no rank is late enough to matter
        double late_s = 0; ///< mean over steps, compared with the mean of the others
        double factor = 1; ///< times as long as without it the steps took
        bool stays = false;
    };

    /// A rank matters when it is late by more than this share of the step.
    static constexpr double min_share = 0.1;
    /// A rank stays the straggler when it is the one in this share of the last reports, of which
    /// there must be at least `min_reports`, over at least `min_steps` steps. It need not be in all
    /// of them, since any host is slow now and then.
    static constexpr double staying_share = 0.8;
    static constexpr std::size_t min_reports = 3;
    static constexpr std::int64_t min_steps = 20;

    /// Adds a step, and how long this rank has waited in it.
    void add(double waited_s, double step_s);
    /// What this rank has waited in the steps since the last report.
    double waited_s() const noexcept { return waited_s_; }

    /// The report on the steps since the last one, given how long ranks have waited. `stays` is
    /// reported once for each rank.
    Report report(Waits const& waits);

  private:
    struct Reported {
        int rank = -1;
        std::int64_t steps = 0;
    };

    /// Keeps the last reports, to which `staying_share` applies. Returns whether `rank` is in that
    /// share of them.
    bool stays(int rank);

    double waited_s_ = 0; ///< sum over steps
    double step_s_ = 0;
    std::int64_t steps_ = 0;
    std::deque<Reported> last_; ///< reports, the newest at the back
    std::set<int> told_;        ///< ranks
};

} // namespace lockstep::train
