#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace lockstep::app {

/// What the files of a run say of a life of it, from the outside.
struct LifeRecord {
    bool started = false;         ///< it wrote a start record
    std::string end;              ///< the reason in its end record; empty: it wrote none
    std::int64_t step = 0;        ///< the last that it has on record
    std::int64_t saved_step = -1; ///< of the newest checkpoint of all lives, -1: none
};

/// Follows a run's metrics.jsonl and history.jsonl over several lives.
class RunWatcher {
  public:
    explicit RunWatcher(std::filesystem::path directory) : directory_(std::move(directory)) {}

    /// A new life begins now: what is in the files is of earlier ones.
    void begin_life();
    LifeRecord life() const;
    /// Whether the new life has done a step.
    bool stepped() const;

  private:
    std::string newest_attempt(double* startup_s) const;

    std::filesystem::path directory_;
    std::uintmax_t metrics_size_ = 0;
    std::string attempt_;
};

} // namespace lockstep::app
