#pragma once

#include "deploy/graph.hpp"

#include <string>

namespace lockstep::deploy {

/// The bytes of an ONNX file of the graph: opset 17, IR version 8, input and output named "inputs"
/// and "outputs", with a batch of any size. The same graph gives the same bytes.
///
/// Throws  Error 64 where the model is larger than such a file can be (2 GiB)
std::string onnx_file(Graph const& graph);

} // namespace lockstep::deploy
