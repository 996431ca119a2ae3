#pragma once

#include "program/graph.hpp"

#include <ATen/core/dispatch/Dispatcher.h>

#include <memory>
#include <string>

namespace lockstep::program {

/// Whether an operator, such as "aten::empty_like", makes a tensor of whatever is in memory.
bool leaves_memory(std::string const& name);

/// An operator that leaves its memory as it is: the same operator, which then fills all of that
/// memory with zeros, so that a program computes the same each time. Null for all others.
std::shared_ptr<Replacement const> filled(c10::OperatorHandle const& op);

} // namespace lockstep::program
