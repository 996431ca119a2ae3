#pragma once

#include "lockstep/config/deck.hpp"
#include "lockstep/data/dataset.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::train {

struct Workload;

/// The training set without the share that data.validation asks for, and that share; nothing where
/// it asks for no share. The same on any number of ranks.
///
/// Throws  Error 64 when there are too few samples
std::optional<std::pair<data::Dataset, data::Dataset>> divide(config::Deck const& deck,
                                                              data::Dataset const& train);

/// Where validation is a share of the training set: how it was drawn, with the counts of both by
/// class, and a warning about classes without samples in it. Else empty.
std::vector<std::string> share_remarks(config::Deck const& deck, Workload const& work);

} // namespace lockstep::train
