#pragma once

#include "search/settings.hpp"
#include "search/space.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace lockstep::search {

/// What a search does next: train a new trial, or a paused one, up to a share of its length.
struct Job {
    std::int64_t trial = 0;   ///< from 0
    double share = 1;         ///< of the run's length, above 0
    Point point{};            ///< of a new trial; empty: the trial is known
    std::int64_t parent = -1; ///< whose checkpoint a new trial begins with; -1: none
    double parent_share = 0;  ///< share at which the checkpoint was written
};

/// The result of a job.
struct Result {
    std::int64_t trial = 0;
    double share = 1;
    std::vector<double> losses{}; ///< of each goal, less is better; infinite where it failed
};

/// Which trials there are and how far each goes: a state machine that depends only on its seed and
/// the results that it was told. All but asha decide from complete sets of results, whatever their
/// order.
class Strategy {
  public:
    virtual ~Strategy() = default;
    /// The next job; nothing while it waits for results, which changes nothing, or at its end.
    virtual std::optional<Job> ask() = 0;
    /// A job that was asked for is done.
    virtual void tell(Result const& result) = 0;
    virtual bool is_finished() const = 0;
    /// Whether decisions depend on the order of results.
    virtual bool depends_on_order() const { return false; }
};

/// The names of all strategies.
std::vector<std::string> strategy_names();

/// `space` must outlive it.
///
/// Throws  Error 64 for a space that the strategy cannot search
std::unique_ptr<Strategy> make_strategy(Settings const& settings, Space const& space);

} // namespace lockstep::search
