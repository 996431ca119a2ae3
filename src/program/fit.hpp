#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "description.hpp"

namespace lockstep::program {

/// Checks that a program takes these inputs: their number, types and sizes, and what its export
/// assumed about them.
///
/// Throws  Error 64 where it does not, and why
void require_fit(Description const& description, std::vector<at::Tensor> const& inputs);

} // namespace lockstep::program
