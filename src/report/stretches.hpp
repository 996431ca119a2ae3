#pragma once

#include "monitor/effective_time.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::report {

/// A stretch of time that went into one use.
struct Stretch {
    double from = 0; ///< seconds since the attempt's processes began
    double to = 0;
    monitor::TimeUse use = monitor::TimeUse::other;
};

/// An attempt whose time is recorded, by what it went into.
struct AttemptStretches {
    std::size_t number = 0; ///< among all attempts, from 1
    monitor::AttemptTime time;
    std::vector<Stretch> stretches; ///< in order, without gaps
    double lost_at_s = -1;          ///< when it was lost; -1: it was not
    std::string cause{};            ///< of the loss
};

/// Stretches of an attempt: `pauses` are the validations and checkpoints for which training stood
/// still. What became of the time between them is known in sum only; steps that were done again
/// are its last ones.
std::vector<Stretch> stretches_of(monitor::AttemptTime const& time, std::vector<Stretch> pauses);

/// The stretches of the attempts whose time is recorded.
std::vector<AttemptStretches> attempt_stretches(std::filesystem::path const& run,
                                                std::vector<monitor::AttemptTime> const& times);

} // namespace lockstep::report
