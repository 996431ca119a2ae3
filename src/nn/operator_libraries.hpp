#pragma once

#include "lockstep/config/own_keys.hpp"

namespace lockstep::nn {

/// The key of model.name = export that names libraries of operators, separated by commas.
inline constexpr char const* operators_key = "operators";

/// Opens the libraries that model.operators names, which stay loaded.
///
/// Throws  Error 66 for a missing file; 69 for one that cannot be loaded, or names another LibTorch
void open_operator_libraries(config::OwnValues const& values);

} // namespace lockstep::nn
