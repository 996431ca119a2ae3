#pragma once

#include "lockstep/nn/registry.hpp"

namespace lockstep::nn {

ModelKind cnn_kind();
ModelKind cnn3d_kind();
ModelKind mlp_kind();
ModelKind resnet_kind();
ModelKind script_kind();
ModelKind unet_kind();

/// The models of the library at `file`, or of the program for "self". The library stays loaded.
///
/// Throws  Error 66 for a file that is not there; 69 for one that cannot be loaded, is no plug-in,
///         or was compiled against other headers or another LibTorch
std::vector<ModelKind> plugin_models(std::string const& file);

} // namespace lockstep::nn
