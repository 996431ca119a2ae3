#pragma once

#include "lockstep/nn/registry.hpp"

#include <filesystem>

namespace lockstep::nn {

ModelKind cnn_kind();
ModelKind cnn3d_kind();
ModelKind mlp_kind();
ModelKind resnet_kind();
ModelKind script_kind();
ModelKind unet_kind();

/// Saves a model that is a script as it is; whether it is one.
bool save_if_script(Model const& model, std::filesystem::path const& path);

} // namespace lockstep::nn
