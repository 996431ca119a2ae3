#pragma once

#include "checkpoint/record.hpp"
#include "lockstep/nn/model.hpp"

namespace lockstep::train {

/// Gives a model the shapes that a file's record notes, where the recorded model has lost channels.
/// The model's values are not meaningful afterwards.
///
/// Throws  Error 65 when these are not the shapes of such a model
void narrow_as_noted(nn::Model& model, checkpoint::Record const& record);

} // namespace lockstep::train
