#pragma once

#include "deploy/graph.hpp"

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::deploy {

/// An input of an exported model, for all samples.
struct RunInput {
    std::string name; ///< in its graph
    Element element = Element::f32;
    std::vector<std::byte> samples; ///< one after the other as the graph takes them
};

struct RunInputs {
    std::vector<RunInput> inputs;
    std::size_t count = 0; ///< samples
    int times = 1;         ///< how often they are computed, to find the fastest
};

struct RunResult {
    std::vector<float> outputs;    ///< of all samples, one after the other
    double seconds_per_sample = 0; ///< on one core, the fastest
};

/// Runs an exported file itself, as a process of its own: a C file compiled by cc into a directory
/// that is removed afterwards, an ONNX file by a Python that has onnxruntime.
///
/// Throws  Error 69 where the compiler, Python or onnxruntime is missing, by name; 65 where the
///         file cannot be compiled or run; 73 or 74 for the directory
RunResult run_exported(std::filesystem::path const& file, RunInputs const& inputs);

} // namespace lockstep::deploy
