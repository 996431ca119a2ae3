#pragma once

#include "lockstep/base/signals.hpp"
#include "lockstep/config/deck.hpp"
#include "lockstep/data/dataset.hpp"
#include "lockstep/monitor/collective_command.hpp"

#include <optional>

#include "federate/site.hpp"

namespace lockstep::app {

/// Opens the whole training set of a deck in this process only.
///
/// Throws  Error as data::Dataset
data::Dataset open_training_set(config::Data const& data);

/// Does what the current round asks of a site, training by all ranks included. `site` is null
/// except on rank 0; `deck` is the federation's with the site's own data.
///
/// Collective  over the world
/// Throws      AgreedError as Site's functions, and as train::train
/// Returns     where the site stands; nothing where training was interrupted
std::optional<federate::Standing> take_part(monitor::CommandContext& context,
                                            federate::Federation const* federation,
                                            federate::Site const* site, config::Deck const& deck,
                                            SignalRequests const& signals);

} // namespace lockstep::app
