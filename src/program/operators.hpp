#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <string>
#include <variant>

namespace lockstep::program {

/// LibTorch's operator of a name such as "torch.ops.aten.relu.default", or why it is not run.
std::variant<c10::OperatorHandle, std::string> find_operator(std::string const& target);

/// Whether it draws random numbers in training mode.
bool draws(c10::OperatorHandle const& op);

} // namespace lockstep::program
