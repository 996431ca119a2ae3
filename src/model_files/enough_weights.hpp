#pragma once

#include "lockstep/checkpoint/verify.hpp"
#include "lockstep/config/deck.hpp"
#include "lockstep/nn/model.hpp"

namespace lockstep::train {

/// Refuses a model of a shape that only a file names, before it is made: a small file could name
/// one that fills the memory.
///
/// Throws  Error 65 where the model has many times more parameters than the file of its weights
void require_enough_weights(config::Model const& model, nn::Interface const& interface,
                            checkpoint::VerifiedFile const& file);

} // namespace lockstep::train
