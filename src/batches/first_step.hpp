#pragma once

#include "lockstep/base/error.hpp"
#include "lockstep/config/deck.hpp"

namespace lockstep::train {

/// The largest absolute values in the samples of a step.
struct Magnitudes {
    double inputs = 0; ///< as the model gets them
    double targets = 0;
};

/// What is told where the first step of a run diverges: of no weight that was updated before, so
/// the learning rate is neither the cause nor the remedy. `normalised`: data.train has mean and
/// std.
ErrorText first_step_text(ErrorText const& diverged, Magnitudes const& largest, bool normalised,
                          config::Deck const& deck);

} // namespace lockstep::train
