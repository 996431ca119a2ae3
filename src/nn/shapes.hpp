#pragma once

#include "lockstep/nn/model.hpp"

#include <string>

namespace lockstep::nn {

/// The shapes of a model's parameters and buffers, a line each: "features.conv1.weight 11 1 3 3".
/// What a file says of a model that has lost channels.
std::string shapes_text(Model const& model);

/// Gives each tensor of `model` the first values of each extent of its shape in `text`; a model
/// that has these shapes already stays as it is. Its values are to be filled by the caller, before
/// anything is learnt.
///
/// Throws  Error 65 for a text that lacks a tensor of the model, or has extents that it has not
void narrow(Model& model, std::string const& text);

} // namespace lockstep::nn
