#pragma once

#include "base/batch_job.hpp"
#include "base/clock.hpp"
#include "lockstep/config/deck.hpp"
#include "lockstep/events/events.hpp"
#include "monitor/console.hpp"

#include <memory>
#include <vector>

namespace lockstep::report {

struct Listening {
    monitor::Talk talk = monitor::Talk::normal;
    bool json = false; ///< records on standard output, too
};

/// The observers of a run: its log, records, history, event files, plots and samples. A run's
/// directory that cannot be written is an error; a disk that fills up later is not.
///
/// Throws  Error 73
std::vector<std::unique_ptr<train::Observer>> run_observers(config::Deck const& deck,
                                                            BatchJob const& job,
                                                            Stopwatch since_start,
                                                            Listening const& listening);

} // namespace lockstep::report
