#pragma once

#include <optional>

#include "choice.hpp"
#include "scheduler.hpp"

namespace lockstep::launch {

/// A job's time, "1:30:00" or "2-00:00:00", in a form that all schedulers accept; nothing for
/// anything else: "30" is minutes to one of them and seconds to another.
std::optional<std::string> job_time(std::string const& text);

/// 12 hours, or the longest of the partition.
std::string likely_time(Partition const* partition);

/// GPUs of a node that a run of this choice would use, and ranks on each node (with dp, replicas);
/// 0: not known.
std::int64_t likely_gpus(LaunchChoice const& choice, config::Deck const& deck,
                         Partition const* partition);
std::int64_t likely_devices(LaunchChoice const& choice, config::Deck const& deck,
                            Partition const* partition);

/// The most ranks that a node can have, as far as it is known.
std::int64_t max_devices(LaunchChoice const& choice, config::Deck const& deck,
                         Partition const* partition);

/// Fills in what a job needs and was not given, and checks whether the scheduler could ever start
/// it: a job that asks for more than there is may wait for ever.
///
/// Throws  Error 64 for a job that can never start
void settle_job(LaunchChoice& choice, Scheduler const& scheduler);

} // namespace lockstep::launch
