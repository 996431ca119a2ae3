#pragma once

#include "base/clock.hpp"

#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "search/study.hpp"
#include "search_trial.hpp"

namespace lockstep::app {

/// What rank 0 decides for all groups of ranks of a search: who trains which trial, when groups are
/// formed again, and when the search leaves.
class SearchCoordinator {
  public:
    struct Parts {
        search::Study& study;
        std::filesystem::path directory;
        int ranks = 1;
        std::function<void()> announce; ///< tells all groups to leave
    };

    explicit SearchCoordinator(Parts parts);

    /// What a group's rank 0 asks, and what it is told: texts of `GroupReport` and `GroupOrder`.
    /// One call at a time; throws nothing.
    std::string answer(int rank, std::string const& request) noexcept;

    /// Into how many groups the ranks are divided now; 0: the search ends. While no group works.
    ///
    /// Throws  Error of the search: one of the journal, or what a trial ran into
    int form_groups();

    bool was_interrupted() const noexcept { return !interrupted_.empty(); }
    std::string const& interrupted() const noexcept { return interrupted_; }
    /// Writes down how much of the ranks' time trials had.
    void note_usage();

  private:
    void take(std::string const& report);
    void take_outcome(search::Outcome const& outcome);
    void leave();
    void fill();
    int wanted_groups() const;
    std::optional<search::Job> next_job();
    void put_by_parent(search::Job const& job) const;
    void print(search::Outcome const& outcome) const;

    Parts parts_;
    std::deque<search::Job> queue_;
    std::map<std::int64_t, search::Job> running_;
    std::map<std::int64_t, std::int64_t> retries_;
    std::map<std::int64_t, std::int64_t> steps_; ///< of starts before, of running trials
    int groups_ = 0;
    bool regroup_ = false;
    bool leaving_ = false;
    std::string interrupted_;
    std::optional<Error> failure_;
    Stopwatch watch_;
    double busy_s_ = 0; ///< of ranks with a trial
};

/// What a group's rank 0 tells of its last job; and what it is told to do.
std::string report_text(std::optional<TrialEnd> const& end, std::string const& signal);

struct GroupOrder {
    enum class What { train, wait, regroup };
    What what = What::wait;
    search::Job job{};
    search::Values values{};
};
GroupOrder order_of(std::string const& text);

} // namespace lockstep::app
