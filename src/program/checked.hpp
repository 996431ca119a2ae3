#pragma once

#include "program/graph.hpp"

#include <ATen/core/dispatch/Dispatcher.h>

#include <memory>

namespace lockstep::program {

/// An operator that computes for hours, or reads what is not there, with numbers or sizes that its
/// tensors may have: the same operator after a check of them. Null for all others.
///
/// Throws  the replacement: c10::Error where the numbers are not possible
std::shared_ptr<Replacement const> checked(c10::OperatorHandle const& op);

} // namespace lockstep::program
