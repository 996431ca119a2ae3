#pragma once

#include <cstddef>
#include <string>

#include "http.hpp"
#include "run_list.hpp"

namespace lockstep::serve {

/// One run's entry in the list of runs, as a JSON object.
std::string overview_json(RunList const& runs, std::size_t place);

/// The rows from `first` on, with all their columns, as a JSON object.
std::string rows_json(Run const& run, std::size_t place, std::size_t first);

/// The response to a permitted request: a file of the page, or data about a run:
///
///     /api/runs                                     the list
///     /api/run?run=N                                events, columns, attempts, the newest step
///     /api/series?run=N&axis=step|time&from=&to=&buckets=&columns=a,b
///     /api/log?run=N[&end=BYTE]                     up to 128 KiB of log.txt that end there
///     /api/deck?run=N                               deck.ini
///     /api/searches                                 the list
///     /api/search?search=N                          the records of its journal
///     /api/picture?run=N&picture=K[&of=samples]     the K-th PNG of plots/, or of samples/
Response answer(Request const& request, RunList const& runs);

/// The runs, "0,3", that a request names, as far as they exist.
std::vector<std::size_t> runs_of(std::string const& words, RunList const& runs);

} // namespace lockstep::serve
