#pragma once

#include "lockstep/checkpoint/verify.hpp"
#include "lockstep/nn/model.hpp"

#include <string>
#include <vector>

namespace lockstep::train {

/// Loads a model's parameters and buffers, by name, from best.h5, a checkpoint or a safetensors
/// file: from a checkpoint, the averaged weights where it has some. Not collective: each rank loads
/// for itself. After an error, the model may hold some of the file's values.
///
/// Shape    of each tensor as in the file
/// Throws   Error 66 when the file is missing, 65 when it is damaged or holds another model, 64
///          when its tensors have another program's names and it, or config.json beside it, tells
///          of a model that computes otherwise, 74 when it cannot be read
/// Returns  the file's tensors that the model has no place for
std::vector<std::string> load_weights(nn::Model& model, checkpoint::VerifiedFile const& file);

} // namespace lockstep::train
