#pragma once

#include "search/journal.hpp"
#include "search/strategy.hpp"

#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::search {

/// The result of a job, as it was measured.
struct Outcome {
    std::int64_t trial = 0;
    double share = 1;
    int code = 0; ///< 0, or the exit code that the run would have ended with
    std::string message{};
    std::map<std::string, double> metrics{}; ///< of the validation, loss, parameters, step_ms
    std::int64_t step = 0;                   ///< last step that was reached
    std::int64_t steps = 0;                  ///< done for it since the search last started
    double seconds = 0;
    int ranks = 1;
};

struct Trial {
    Values values;
    Point point;
    std::int64_t parent = -1;
    double parent_share = 0;
    std::vector<Outcome> outcomes{};

    /// The last one; null where there is none.
    Outcome const* newest() const { return outcomes.empty() ? nullptr : &outcomes.back(); }
};

/// What identifies a search, from its journal's first line.
struct Identity {
    std::map<std::string, std::string> space; ///< keys of the SPACE file with their values
    std::string deck;                         ///< as DeckSource packs it
    std::string version;                      ///< of the program
};

/// A search: its strategy, and the journal from which it continues.
class Study {
  public:
    /// Continues what the journal holds, or begins it. `journal` may be null: then nothing is
    /// recorded.
    ///
    /// Throws  Error 64 when the journal is of another space or deck, 65 when it has a decision
    ///         that this search would not have made
    Study(Identity identity, std::unique_ptr<Journal> journal);
    Study(Study const&) = delete;
    Study& operator=(Study const&) = delete;
    ~Study() = default;

    /// The search in a directory's journal, for reading only.
    ///
    /// Throws  Error 66 when there is none, 65
    static std::unique_ptr<Study> look_at(std::filesystem::path const& directory);

    /// The next job: one that was asked for before the search was interrupted, or a new one;
    /// nothing while results are missing, or at the end.
    std::optional<Job> next();
    /// Records the result of a job. Throws Error 64 for a trial that is not open.
    void tell(Outcome outcome);
    /// Adds a line that the strategy does not depend on.
    ///
    /// "begin" says that ranks train a trial on from `step`, its newest checkpoint (-1: none);
    /// "left" and "retry" that they have left it; "start" that no rank trains any trial.
    void note(nlohmann::json record);

    /// How often in a row the job died while ranks trained an open trial, which came to no
    /// checkpoint meanwhile; `step` is the newest one that it has.
    std::int64_t deaths(std::int64_t trial, std::int64_t step) const;

    bool is_finished() const { return strategy_->is_finished(); }
    bool depends_on_order() const { return strategy_->depends_on_order(); }
    std::int64_t queued() const; ///< jobs that were asked for and are not handed out yet
    std::vector<Trial> const& trials() const noexcept { return trials_; }
    Settings const& settings() const noexcept { return settings_; }
    Space const& space() const noexcept { return space_; }
    Identity const& identity() const noexcept { return identity_; }
    std::vector<nlohmann::json> const& notes() const noexcept { return notes_; }

    /// The loss for each goal, less is better; infinite where the trial failed or has no such
    /// metric.
    std::vector<double> losses(Outcome const& outcome) const;
    /// The trials to choose from: for one goal the best, for several those that none dominates;
    /// among those that were trained longest. Best first.
    std::vector<std::int64_t> best() const;

  private:
    /// How ranks last began to train an open trial.
    struct Begun {
        std::int64_t step = -1;
        std::int64_t deaths = 0;
        bool trains = false; ///< nobody has said that they have left it
    };

    static config::DeckSource source_of(Identity const& identity);
    void replay(std::vector<nlohmann::json> const& records);
    void take_ask(nlohmann::json const& record);
    void take_note(nlohmann::json record);
    void accept(Job const& job);
    void accept(Outcome const& outcome);

    Identity identity_;
    Settings settings_;
    Space space_;
    std::unique_ptr<Strategy> strategy_;
    std::unique_ptr<Journal> journal_;
    std::vector<Trial> trials_;
    std::deque<Job> waiting_;             ///< asked for before, and to be handed out again
    std::map<std::int64_t, Job> open_;    ///< by trial: without a result
    std::map<std::int64_t, Begun> begun_; ///< by trial: open ones
    std::vector<std::int64_t> asked_;     ///< trials of all jobs, in their order
    std::vector<nlohmann::json> notes_;
};

/// "trials/0001", from a trial's number.
std::string trial_directory(std::int64_t trial);

/// Refuses trials beside the journal that it does not name: it was removed, or a backup of it was
/// restored. `known` is the number of trials that it names.
///
/// Throws  Error 65
void require_known_trials(std::filesystem::path const& directory, std::size_t known);

constexpr char const* journal_name = "search.jsonl";

} // namespace lockstep::search
