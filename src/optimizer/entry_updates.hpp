#pragma once

#include "arena/layout.hpp"
#include "lockstep/config/deck.hpp"

#include <string>
#include <vector>

namespace lockstep::train {

/// What is an entry's own in its update.
struct EntryUpdate {
    bool exempt = false; ///< from weight decay and trust ratios
    double rate = 1;     ///< that multiplies the learning rate
    double decay = 0;    ///< weight decay

    friend bool operator==(EntryUpdate const&, EntryUpdate const&) = default;
};

/// Looks up what each entry of a layout has of its own, by optimizer.no-decay, groups and
/// layer-decay.
///
/// Throws  Error 64 for a pattern that matches no parameter's name, and for a layer-decay of a
///         model without blocks
std::vector<EntryUpdate> entry_updates(config::Optimizer const& options, Layout const& layout);

/// A line for each kind of update that trained parameters have, for people; none where the deck
/// asks for no groups and no layer-decay.
std::vector<std::string> entry_updates_text(config::Optimizer const& options, Layout const& layout);

} // namespace lockstep::train
