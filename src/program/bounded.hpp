#pragma once

#include "program/graph.hpp"

#include <ATen/core/Tensor.h>

namespace lockstep::program {

/// Checks the size of a result that values of tensors decide: one huge value would fill the memory.
/// `given` are the elements of the operator's tensors.
///
/// Throws  c10::Error where it would have more elements than are supported
void require_moderate(double elements, double given);

/// Lets LibTorch's operators in a graph, and in the graphs within it, that are given numbers which
/// were read from tensors (item), or computed from such, compare the size of their results with
/// that before they make them.
void bound_results(Graph& graph);

} // namespace lockstep::program
