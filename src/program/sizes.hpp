#pragma once

#include <ATen/core/ivalue.h>

#include <string>
#include <vector>

namespace lockstep::program {

/// Whether a node's target is a calculation of sizes, such as "_operator.floordiv".
bool is_calculation(std::string const& target);

/// Its result, as Python has it: floordiv and mod round down.
///
/// Throws  Error 64 for an operator that is not supported, or for operands that it does not take
c10::IValue calculate(std::string const& target, std::vector<c10::IValue> const& values);

} // namespace lockstep::program
