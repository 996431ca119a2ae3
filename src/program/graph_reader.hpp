#pragma once

#include "program/graph.hpp"

#include <memory>

#include "schema.hpp"

namespace lockstep::program {

/// Reads the graph of an exported program, looks up LibTorch's operators and completes their
/// arguments.
///
/// Throws  Error 64 for what cannot be run, with the operator and the line of Python that made it;
///         nlohmann::json::exception, or Error 65, for JSON of another form
std::shared_ptr<Graph> read_graph(Json const& json);

} // namespace lockstep::program
