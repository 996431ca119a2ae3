#pragma once

#include "lockstep/comm/communicator.hpp"
#include "lockstep/config/deck.hpp"
#include "lockstep/data/dataset.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace lockstep::train {

/// Mean and standard deviation (over n) of the values that a regression learns.
///
/// Shape  [values of a sample] of up to 64; of more, [1]
struct TargetMoments {
    std::vector<double> mean;
    std::vector<double> std;
};

/// The moments of the samples that a deck's regression is trained on, without the share that is
/// kept for validation. They have the same bits on any number of ranks, each of which reads a part
/// of the targets.
///
/// Collective  over `world`
/// Throws      AgreedError as Dataset::read_targets and `divide`
/// Returns     nothing for other tasks and targets, and for more values than are read where
///             data.normalise-targets does not ask for it
std::optional<TargetMoments> target_moments(comm::Communicator const& world,
                                            config::Deck const& deck, data::Dataset const* train);

} // namespace lockstep::train
