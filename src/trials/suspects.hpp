#pragma once

#include "search/study.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>

namespace lockstep::trials {

/// The trials that may be what the job of a search died of several times, for they came to no
/// checkpoint. Each gets a last chance alone: if the job dies once more, no other trial was the
/// cause, and it has failed.
class Suspects {
  public:
    /// `study` must outlive it.
    Suspects(search::Study const& study, std::filesystem::path directory);

    /// The result of a trial that has had its last chance; nothing for one that may run, perhaps as
    /// a suspect.
    std::optional<search::Outcome> failure(search::Job const& job);
    /// A trial has its result.
    void release(std::int64_t trial) { alone_.erase(trial); }
    /// Releases the suspects that have a newer checkpoint.
    void release_saved();
    /// Whether a trial is to run while no other one does.
    bool contains(std::int64_t trial) const { return alone_.contains(trial); }

    /// Step of a trial's newest checkpoint, -1: none.
    std::int64_t saved_step(std::int64_t trial) const;

  private:
    search::Study const& study_;
    std::filesystem::path directory_;
    std::set<std::int64_t> alone_;
};

} // namespace lockstep::trials
