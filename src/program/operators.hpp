#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <string>
#include <variant>
#include <vector>

namespace lockstep::program {

/// Why an operator is not run, and what to do.
struct NoOperator {
    std::string why;
    std::string next = "Replace that operator in the model by public operators of PyTorch, and "
                       "export the model with torch.export.export, without run_decompositions";
};

/// Notes which operators LibTorch has. Call it before a library of the user's is opened: the
/// operators that come later are the library's.
void note_operators_of_torch();

/// The operator of a name such as "torch.ops.aten.relu.default", LibTorch's own or one of a library
/// that was opened.
std::variant<c10::OperatorHandle, NoOperator> find_operator(std::string const& target);

/// Whether it draws random numbers in training mode.
bool draws(c10::OperatorHandle const& op);
/// Whether it draws them in evaluation mode, too: no argument tells it the mode.
bool draws_always(c10::OperatorHandle const& op);
/// Whether it draws them with these arguments, one for each of its schema.
bool draws_with(c10::OperatorHandle const& op, std::vector<c10::IValue> const& arguments);

/// Whether an argument of this name tells an operator whether it is in training.
bool is_mode(std::string const& argument);
/// false, or 0 as a real number.
bool is_false(c10::IValue const& value);

} // namespace lockstep::program
