#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::launch {

/// What a run's files say about an attempt, read from outside.
struct AttemptStatus {
    bool started = false;           ///< it wrote a start record
    std::string end;                ///< the reason in its end record; empty: it wrote none
    bool ended_by_launcher = false; ///< which alone has asked for the end
    std::int64_t failure = 0;       ///< the exit code that its root cause has; 0: none is on record
    std::int64_t step = 0;          ///< the last that it has on record
    /// The step of the newest checkpoint of all attempts, or from which one has resumed; -1: none.
    std::int64_t saved_step = -1;
};

/// 0 for a file that does not exist.
std::uintmax_t size_of(std::filesystem::path const& file);

/// Follows a run or a search over several attempts, by the files that it writes.
class Watcher {
  public:
    virtual ~Watcher() = default;
    /// A new attempt begins now: what is in the files now is of earlier ones.
    virtual void begin_attempt() = 0;
    virtual AttemptStatus attempt() const = 0;
    /// Whether the new attempt has done a step.
    virtual bool stepped() const = 0;
    /// The text of checkpoints/id of the run; empty: it has none, or it is a search.
    virtual std::string checkpoints_id() const = 0;
    /// The hosts that earlier launches of this job have left out for the rest of it.
    virtual std::vector<std::string> retired(std::string const& job) const = 0;
};

/// Follows a run by its metrics.jsonl and history.jsonl.
class RunWatcher : public Watcher {
  public:
    explicit RunWatcher(std::filesystem::path directory) : directory_(std::move(directory)) {}

    void begin_attempt() override;
    AttemptStatus attempt() const override;
    bool stepped() const override;
    std::string checkpoints_id() const override;
    std::vector<std::string> retired(std::string const& job) const override;

  private:
    std::string newest_attempt(double* startup_s) const;

    std::filesystem::path directory_;
    std::uintmax_t metrics_size_ = 0;
    std::string attempt_;
};

/// Follows a search by its journal, and by the checkpoints and records of its trials.
class SearchWatcher : public Watcher {
  public:
    explicit SearchWatcher(std::filesystem::path directory) : directory_(std::move(directory)) {}

    void begin_attempt() override;
    /// `saved_step` grows with each result and each newer checkpoint of a trial.
    AttemptStatus attempt() const override;
    bool stepped() const override;
    std::string checkpoints_id() const override { return {}; }
    std::vector<std::string> retired(std::string const&) const override { return {}; }

  private:
    std::filesystem::path directory_;
    std::int64_t lines_ = 0; ///< of the journal that earlier attempts wrote
    std::uintmax_t records_ = 0;
};

} // namespace lockstep::launch
