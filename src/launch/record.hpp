#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace lockstep::launch {

/// What the files of a run say of an attempt of it, from the outside.
struct AttemptStatus {
    bool started = false;         ///< it wrote a start record
    std::string end;              ///< the reason in its end record; empty: it wrote none
    std::int64_t step = 0;        ///< the last that it has on record
    std::int64_t saved_step = -1; ///< of the newest checkpoint of all attempts, -1: none
};

/// Follows a run's metrics.jsonl and history.jsonl over several attempts.
class RunWatcher {
  public:
    explicit RunWatcher(std::filesystem::path directory) : directory_(std::move(directory)) {}

    /// A new attempt begins now: what is in the files is of earlier ones.
    void begin_attempt();
    AttemptStatus attempt() const;
    /// Whether the new attempt has done a step.
    bool stepped() const;

  private:
    std::string newest_attempt(double* startup_s) const;

    std::filesystem::path directory_;
    std::uintmax_t metrics_size_ = 0;
    std::string attempt_;
};

} // namespace lockstep::launch
