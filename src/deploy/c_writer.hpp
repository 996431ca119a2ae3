#pragma once

#include "deploy/graph.hpp"

#include <string>
#include <vector>

namespace lockstep::deploy {

/// An exported model as source code.
struct CSource {
    std::string source;  ///< STEM.c: C99 that needs only the standard library and libm
    std::string header;  ///< STEM.h, for C and C++
    std::string fortran; ///< NAME.f90: a module with interfaces for Fortran 2003
};

/// Writes the graph for one sample after the other, with static memory, for files that are called
/// `stem` (without quotation marks, backslashes and line breaks). All names of the source begin
/// with its C name. A single input is called inputs, one of several in_ and its name. The same
/// graph gives the same text.
///
/// Throws  Error 64 for an operator that has no C form here, by name
CSource c_source(Graph const& graph, std::string const& stem);

/// A C identifier from the stem of a file name: "my-net.v2" becomes "my_net_v2".
std::string c_name(std::string const& stem);

/// An input of a graph that has become C.
struct CInput {
    std::string name; ///< in the graph
    Element element = Element::f32;
};

/// A program around the model in files that are called `stem`: argv is a file of samples (those of
/// the first input, then those of the next), one for their outputs, the number of samples, and how
/// often to compute them; prints seconds per sample, and exits with 1 where the model refused a
/// sample.
std::string c_runner(std::vector<CInput> const& inputs, std::string const& stem);

} // namespace lockstep::deploy
