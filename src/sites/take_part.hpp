#pragma once

#include "federate/site.hpp"
#include "lockstep/base/signals.hpp"
#include "lockstep/config/deck.hpp"
#include "lockstep/data/dataset.hpp"
#include "lockstep/train/trainer.hpp"
#include "monitor/watchdog.hpp"

#include <functional>
#include <optional>
#include <string>

namespace lockstep::sites {

/// Opens the whole training set of a deck in this process only.
///
/// Throws  Error as data::Dataset
data::Dataset open_training_set(config::Deck const& deck);

/// The ranks that take part in a federation as one site.
struct SiteRanks {
    comm::Communicator const& ranks;
    SignalRequests const& signals;
    monitor::Watchdog& watchdog;
    std::function<void(std::string const&)> tell; ///< on their rank 0: says something to people
    std::string version;                          ///< of the program
    /// As in train::RunOptions.
    std::function<int()> asked{};
    std::optional<train::PlaceOnHost> place{};
};

/// Does what the current round asks of a site, training by all its ranks included. `site` is null
/// except on their rank 0; `deck` is the federation's with the site's own data.
///
/// Collective  over the site's ranks
/// Throws      AgreedError as Site's functions, and as train::train
/// Returns     where the site stands; nothing where training was interrupted
std::optional<federate::Standing> take_part(SiteRanks const& own,
                                            federate::Federation const* federation,
                                            federate::Site const* site, config::Deck const& deck);

} // namespace lockstep::sites
