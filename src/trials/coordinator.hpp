#pragma once

#include "base/clock.hpp"
#include "search/study.hpp"

#include <nlohmann/json.hpp>

#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "messages.hpp"
#include "suspects.hpp"

namespace lockstep::trials {

/// What rank 0 decides for all ranks of a search: which of them train which trial, and when the
/// search stops. What to try is decided by the study.
class SearchCoordinator {
  public:
    struct Setup {
        search::Study& study;
        std::filesystem::path directory;
        int ranks = 1;
        /// Replicas of a trial, the most ranks that it can have.
        std::function<std::int64_t(search::Values const&)> replicas;
        std::function<void()> announce; ///< tells all ranks to leave
    };

    explicit SearchCoordinator(Setup parts);

    /// Answers a rank without work: `request` is the text of a `RankReport`, the answer that of a
    /// `RankOrder`. One call at a time; throws nothing.
    std::string answer(int rank, std::string const& request) noexcept;

    /// Records how much of the ranks' time was spent on trials. Called after the last answer.
    ///
    /// Throws  Error of the search: one of the journal, or what a trial ran into
    void finish(nlohmann::json resources);

    bool was_interrupted() const noexcept { return !interrupted_.empty(); }
    std::string const& interrupted() const noexcept { return interrupted_; }

  private:
    struct Running {
        search::Job job;
        std::vector<int> ranks;
        Stopwatch since{};
        double expected_s = 0;           ///< 0: not known
        std::optional<StateOf> parent{}; ///< whose state it fetches from memory
    };
    /// Where the newest state of a trial lies in memory.
    struct Held {
        double share;
        std::int64_t step;
        std::vector<int> ranks;
    };

    void take(int rank, RankReport const& report);
    void take_end(TrialEnd const& end);
    void take_outcome(search::Outcome const& outcome);
    void note_left(std::int64_t trial) noexcept;
    void leave();
    std::int64_t first_step(search::Job const& job) const;
    void put_in_queue(search::Job job);
    bool must_wait(search::Job const& job);
    void fill();
    void schedule();
    int ranks_for_next(int free) const;
    bool some_are_coming() const;
    double effort_expected(search::Job const& job) const;
    double wait_expected(int more) const;
    void give(search::Job const& job, int ranks);
    std::vector<int> take_idle(int ranks);
    std::optional<StateOf> parent_in_memory(search::Job const& job) const;
    std::set<StateOf> needed_states() const;
    bool retry(search::Outcome const& outcome);
    void require_goals(search::Outcome const& outcome) const;
    void put_by_parent(search::Job const& job) const;
    void print(search::Outcome const& outcome) const;

    Setup parts_;
    Suspects suspects_;
    std::deque<search::Job> queue_;
    std::map<std::int64_t, Running> running_;
    std::map<std::int64_t, std::int64_t> retries_;
    std::map<std::int64_t, Held> held_;
    std::set<int> idle_;               ///< ranks that have asked and have nothing to do
    std::map<int, RankOrder> ordered_; ///< by rank: its next order
    int orders_ = 0;
    double effort_s_ = 0; ///< rank-seconds of successful trials, for `shares_`
    double shares_ = 0;
    bool leaving_ = false;
    std::set<int>
        lost_; ///< ranks with a failure of their own, which end the job when the others have left
    std::string interrupted_;
    std::optional<Error> failure_;
    Stopwatch watch_;
    double busy_s_ = 0; ///< seconds of ranks with a trial
};

} // namespace lockstep::trials
