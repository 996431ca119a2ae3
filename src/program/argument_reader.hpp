#pragma once

#include "program/graph.hpp"

#include <ATen/core/function_schema.h>

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "schema.hpp"

namespace lockstep::program {

/// The slots of a graph's values, by their names.
using SlotNames = std::map<std::string, std::size_t>;

/// Reads the arguments of nodes.
///
/// Each function throws Error 64 for an argument that this version does not support;
/// nlohmann::json::exception, or Error 65, for JSON of another form.
class ArgumentReader {
  public:
    using ReadGraph = std::function<std::shared_ptr<Graph const>(Json const&)>;

    /// `names` outlives the reader, and has a value's name before it is read; `nested` reads the
    /// graphs that are arguments.
    ArgumentReader(SlotNames const& names, ReadGraph nested)
        : names_(names), nested_(std::move(nested)) {}

    /// As an operator wants it: converted, and made a list where one number stands for it.
    Argument read(Json const& json, c10::Argument const& wanted) const;
    /// Reads an argument of the kind that the JSON names.
    Argument read(Json const& json) const;

  private:
    Argument slot(Json const& name) const;
    Argument symbolic(Json const& json) const;
    Argument tensor(Json const& json) const;
    Argument optional_tensor(Json const& json) const;
    /// `element`: of the list that the operator wants, or none.
    Argument plain_argument(Json const& json, c10::TypePtr const& element) const;
    /// `count` above 0 means a list that may be given as one number.
    Argument argument(Json const& json, c10::TypePtr const& wanted, int count) const;

    SlotNames const& names_;
    ReadGraph nested_;
};

} // namespace lockstep::program
