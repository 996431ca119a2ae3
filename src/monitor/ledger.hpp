#pragma once

#include "base/batch_job.hpp"
#include "base/clock.hpp"
#include "lockstep/events/events.hpp"
#include "monitor/attempt_time.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

namespace lockstep::monitor {

/// history.jsonl: one line for each attempt of a run, what it cost and what its result was. The
/// line is written, without an end, at the attempt's start; an attempt that was killed never wrote
/// its end, so the next one completes its line from what metrics.jsonl holds of it. Where a run's
/// directory is absent, the line is written when it is back.
class Ledger : public train::Observer {
  public:
    /// `since_start` counts from the program's start, for the time that starting up took.
    Ledger(std::filesystem::path directory, BatchJob job, Stopwatch since_start);
    ~Ledger() override;

    void on(train::Event const& event) override;

  private:
    void begin(train::Started const& event);
    void resumed_at(std::int64_t step);
    void count(train::Step const& event);
    void end(train::Ended const& event);
    void write();
    void read_earlier();
    void set_back(std::int64_t step);

    std::filesystem::path directory_;
    BatchJob job_;
    Stopwatch since_start_;
    std::unique_ptr<nlohmann::ordered_json> lines_; ///< an array; ours is the last
    double checkpoint_s_ = 0;                       ///< training stood still
    double write_s_ = 0; ///< until they were durable, most of it in the background
    double trained_s_ = 0;
    double validation_s_ = 0; ///< and tests
    bool late_ = false;       ///< the directory has not been this process's since the start
    std::optional<std::int64_t> resumed_at_;
};

/// Completes the lines of attempts that have no end, from what metrics.jsonl holds of them: called
/// by the process that reports why its attempt fails.
void complete_history(std::filesystem::path const& directory);

/// What became of the time of the run's attempts. Of one without an end it is what metrics.jsonl
/// holds by now.
std::vector<AttemptTime> attempt_times(std::filesystem::path const& directory);

} // namespace lockstep::monitor
