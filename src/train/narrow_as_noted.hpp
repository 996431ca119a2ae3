#pragma once

#include "checkpoint/record.hpp"
#include "lockstep/nn/model.hpp"

namespace lockstep::train {

/// Gives a model the shapes that a file's record notes, where that one has lost channels. Its values
/// stay whatever they were.
///
/// Throws  Error 65 when these are not the shapes of such a model
void narrow_as_noted(nn::Model& model, checkpoint::Record const& record);

} // namespace lockstep::train
