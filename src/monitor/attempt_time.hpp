#pragma once

#include "base/json_line.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::monitor {

/// What became of an attempt's time, as its line in history.jsonl tells it. Seconds that were not
/// recorded are NaN: earlier versions of the program recorded less.
struct AttemptTime {
    std::string attempt;
    std::string start;     ///< of its records, UTC
    std::string end;       ///< empty: it has not ended
    std::string job;       ///< of the batch system
    std::string launch;    ///< the `lockstep launch` command that started it
    std::string retired{}; ///< hosts that the launcher has left out since, each with the evidence
    std::string reason;    ///< of its end; "failed" and "killed" are losses
    std::int64_t restart = 0; ///< of the job
    std::int64_t ranks = 0;
    std::int64_t first_step = 0;
    std::int64_t last_step = 0;
    std::int64_t lost_steps = 0;
    double setup_s = 0;      ///< from the start of its processes to that of its records
    double seconds = 0;      ///< from the start of its processes to its end
    double waited_s = 0;     ///< from the end of the attempt before it, in the same allocation
    double startup_s = 0;    ///< 0: it took no step
    double productive_s = 0; ///< in steps that were kept
    double lost_s = 0;       ///< in steps that were done again
    double checkpoint_s = 0; ///< training stood still
    double validation_s = 0; ///< validations and tests
    double silent_s = 0;     ///< from its last record before a failure to that of the failure

    bool is_recorded() const; ///< whether all of its own seconds are known
    bool was_lost() const { return reason == "failed" || reason == "killed"; }
    double begin() const; ///< of its processes, seconds since 1970
};

AttemptTime attempt_time(JsonLine const& line);

/// Whether an attempt continues in the allocation of the one before it, which did not end as it
/// should: the time between them was allocated to the run, too.
bool continues(AttemptTime const& before, AttemptTime const& next);

} // namespace lockstep::monitor
