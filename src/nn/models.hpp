#pragma once

#include "lockstep/nn/registry.hpp"

namespace lockstep::nn {

ModelKind cnn_kind();
ModelKind cnn3d_kind();
ModelKind mlp_kind();
ModelKind resnet_kind();
ModelKind script_kind();
ModelKind unet_kind();

} // namespace lockstep::nn
