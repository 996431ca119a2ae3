#pragma once

#include "deploy/graph.hpp"

#include <string>

namespace lockstep::deploy {

/// "float", "int64_t", "int8_t", "uint8_t"
std::string c_type(Element element);

/// A number that a C compiler reads as exactly this one.
std::string c_number(double value, Element element);

} // namespace lockstep::deploy
