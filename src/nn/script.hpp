#pragma once

#include "lockstep/nn/model.hpp"

#include <ostream>

namespace lockstep::nn {

/// Saves a model that is a script, without tracing it; returns whether it is one.
bool save_if_script(Model const& model, std::ostream& out);

} // namespace lockstep::nn
