#pragma once

#include "lockstep/config/own_keys.hpp"

#include <cstdint>

namespace lockstep::nn {

/// The key of model.name = export that names libraries of operators, separated by commas.
inline constexpr char const* operators_key = "operators";

/// Opens the libraries that model.operators names, which stay loaded. Returns a hash of their
/// contents, 0 where there are none.
///
/// Throws  Error 66 for a missing file; 69 for one that cannot be loaded
std::uint64_t open_operator_libraries(config::OwnValues const& values);

} // namespace lockstep::nn
