#pragma once

#include "lockstep/config/own_keys.hpp"

#include <string>
#include <vector>

namespace lockstep::nn {

/// The key of model.name = export that names libraries of operators, separated by commas.
inline constexpr char const* operators_key = "operators";

/// The libraries that a value of model.operators names.
///
/// Throws  Error 64 for an empty name among them
std::vector<std::string> operator_libraries(std::string const& value);

/// Opens the libraries that model.operators names, which stay loaded.
///
/// Throws  Error 64 for an empty name; 66 for a missing file; 69 for one that cannot be loaded, or
/// names another LibTorch
void open_operator_libraries(config::OwnValues const& values);

} // namespace lockstep::nn
