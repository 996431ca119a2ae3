#pragma once

#include "lockstep/nn/model.hpp"

#include <string>

namespace lockstep::nn {

/// The shapes of a model's parameters and buffers, a line each: "features.conv1.weight 11 1 3 3".
/// Files store it for a model that has lost channels.
std::string shapes_text(Model const& model);

/// Cuts each tensor of `model` to its shape in `text`, keeping the first values of each extent; a
/// model that has these shapes already stays as it is. Its values are to be filled by the caller,
/// before anything is learnt.
///
/// Throws  Error 65 for a text that lacks a tensor of the model, or has larger extents than it
void narrow(Model& model, std::string const& text);

} // namespace lockstep::nn
