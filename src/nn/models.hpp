#pragma once

#include "lockstep/nn/registry.hpp"

namespace lockstep::nn {

ModelKind cnn_kind();
ModelKind mlp_kind();
ModelKind script_kind();

} // namespace lockstep::nn
