#pragma once

#include "lockstep/config/deck.hpp"
#include "lockstep/events/events.hpp"

#include <memory>

namespace lockstep::report {

/// An observer that writes the samples which a run shows at its start, if they are pictures, into
/// the run's directory: samples/0000.png and so on. Each file gets its name when it is whole.
std::unique_ptr<train::Observer> make_sample_files(config::Deck const& deck);

} // namespace lockstep::report
