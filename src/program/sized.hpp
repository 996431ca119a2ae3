#pragma once

#include "program/graph.hpp"

#include <ATen/core/dispatch/Dispatcher.h>

#include <memory>

namespace lockstep::program {

/// An operator with an argument that repeats a size of its tensors, which the program holds as a
/// number: the groups of a convolution, the shape of a layer norm. The same operator, but with the
/// size that its tensors have, since they may have lost channels. Null for all others.
std::shared_ptr<Replacement const> sized(c10::OperatorHandle const& op);

} // namespace lockstep::program
