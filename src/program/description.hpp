#pragma once

#include "program/archive.hpp"
#include "program/graph.hpp"

#include <c10/core/ScalarType.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "blocks.hpp"
#include "schema.hpp"

namespace lockstep::program {

/// A node's operator, and its line of Python.
std::string text_of(Node const& node);

/// An input of a program: passed by the caller, or stored with it.
struct Input {
    enum class Kind { parameter, buffer, constant, nothing, user };
    Kind kind = Kind::user;
    std::string name;
    c10::ScalarType type = c10::ScalarType::Undefined;
    std::vector<Size> sizes{};
};

/// The bounds of a symbolic size.
struct Bounds {
    std::int64_t minimum = 0;
    std::int64_t maximum = std::numeric_limits<std::int64_t>::max();
};

/// How a program depends on the training mode.
struct Mode {
    std::string text; ///< an operator that works differently in training, and its line
    bool draws = false;
};

/// What an archive says about one program, without its tensors.
struct Description {
    std::string name; ///< of the file
    std::shared_ptr<Graph const> graph;
    std::vector<Block> blocks{}; ///< to be computed again in backward; none: everything is kept
    std::vector<Input> inputs;
    std::map<std::string, Bounds> bounds;
    std::vector<std::string> guards;
    Mode mode;

    /// How many inputs the caller passes.
    std::size_t given() const;
};

/// Reads models/NAME.json.
///
/// Throws  Error 65 for a damaged archive; 64 for a program that cannot be run, and what to do;
///         exceptions of Json and of LibTorch for values that are not of the schema
Description read_description(Archive const& archive, std::string const& name);

} // namespace lockstep::program
