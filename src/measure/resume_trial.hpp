#pragma once

#include "base/clean_up.hpp"
#include "checkpoint/diff.hpp"
#include "lockstep/config/deck.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::measure {

/// A training that is interrupted, and one that is not.
struct ResumeTrialOptions {
    std::int64_t ranks = 0;
    std::int64_t resume_ranks = 0;
    std::int64_t kill_at = 0;
    std::int64_t steps = 0;
    std::string launcher = "mpirun";
    std::vector<std::string> words; ///< decks and keys, as `lockstep train` takes them
};

/// The directories of both runs, removed with this object.
class TrialRuns {
  public:
    explicit TrialRuns(std::filesystem::path const& run);
    TrialRuns(TrialRuns const&) = delete;
    TrialRuns& operator=(TrialRuns const&) = delete;
    ~TrialRuns();
    std::filesystem::path operator/(std::string const& name) const { return path_ / name; }

  private:
    std::filesystem::path path_;
    CleanUp clean_up_; ///< if a signal ends this process
};

/// Trains once straight and once with a kill between, by starting this program, and compares.
class ResumeTrial {
  public:
    explicit ResumeTrial(ResumeTrialOptions options);

    /// Throws  Error with the exit code of a run that failed in another way than intended; 70 where
    ///         SIGKILL had no effect
    void run() const;
    checkpoint::Comparison compare() const;
    /// Lines for people: where the hashes of weights in both records begin to differ.
    std::vector<std::string> where_they_part() const;

  private:
    int train(std::string const& run, std::int64_t ranks, std::string const& fault) const;
    void require_finished(int code, std::string const& run) const;
    /// Looks at how far the run came that was not killed.
    void require_kill_before_end() const;
    bool killed_in_time(std::string const& run) const;
    std::filesystem::path newest(std::string const& run) const;
    std::string last_words() const;

    ResumeTrialOptions options_;
    config::Deck deck_;
    TrialRuns runs_;
};

} // namespace lockstep::measure
