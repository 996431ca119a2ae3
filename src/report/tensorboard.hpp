#pragma once

#include "lockstep/config/deck.hpp"
#include "lockstep/events/events.hpp"

#include <memory>

namespace lockstep::report {

/// An observer that writes event files for TensorBoard into the run's directory, a new one for each
/// attempt: scalars of each logged step, validation, test and epoch, histograms and samples as
/// pictures where there are any, and the keys of the deck that change the result as
/// hyper-parameters. What an earlier attempt wrote about steps that are done again is marked as
/// superseded.
///
/// Throws  Error 69 where the program was built without protobuf, 73 when the file cannot be made
std::unique_ptr<train::Observer> make_tensorboard(config::Deck const& deck);

} // namespace lockstep::report
