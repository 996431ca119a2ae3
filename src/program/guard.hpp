#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>

namespace lockstep::program {

/// Whether inputs meet a condition that the export assumed, a Python expression of their sizes such
/// as "L['x'].size()[0] % 2 == 0".
///
/// Throws  Error 64 for an expression that is not understood
bool holds(std::string const& guard, std::map<std::string, at::Tensor> const& inputs);

} // namespace lockstep::program
