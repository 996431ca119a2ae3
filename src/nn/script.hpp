#pragma once

#include "lockstep/nn/model.hpp"

#include <filesystem>

namespace lockstep::nn {

/// Saves a model that is a script as it is; whether it is one.
bool save_if_script(Model const& model, std::filesystem::path const& path);

} // namespace lockstep::nn
