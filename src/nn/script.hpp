#pragma once

#include "lockstep/nn/model.hpp"

#include <ostream>
#include <string>
#include <unordered_map>

namespace lockstep::nn {

/// Saves a model that is a script, without tracing it, and extra files in it; returns whether it is
/// one.
bool save_if_script(Model const& model, std::ostream& out,
                    std::unordered_map<std::string, std::string> const& extra);

} // namespace lockstep::nn
