#pragma once

#include "checkpoint/record.hpp"
#include "lockstep/config/deck.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::train {

/// What the length of a run follows from, besides its deck.
struct LengthFacts {
    std::int64_t steps_per_epoch = 1;
    std::int64_t max_steps = 0; ///< of the data module; 0: any number
    std::int64_t samples = 0;   ///< of data.train, where privacy.noise is set
    bool validates = false;     ///< there is a validation set, or episodes for it
};

/// A sentence on which of several keys ends the run, and when the others would; empty where only
/// one is set.
std::string limits_text(config::Deck const& deck, LengthFacts const& facts);

/// Whether train.patience can end a run of this length before its end.
bool can_end_early(config::Deck const& deck, LengthFacts const& facts);

/// Sentences on keys that have no effect, or not the one that they name, in a run of this length
/// and with or without a validation set.
std::vector<std::string> idle_texts(config::Deck const& deck, LengthFacts const& facts);

/// A sentence where the learning rates of a resumed run change because its length does; else empty.
/// `before` is the record of the checkpoint in `file`; `deck` the settled one of the resumed run.
///
/// Throws  as `stored_deck`
std::string stretch_text(checkpoint::Record const& before, std::filesystem::path const& file,
                         config::Deck const& deck, LengthFacts const& facts);

} // namespace lockstep::train
