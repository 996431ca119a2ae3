#pragma once

#include "lockstep/nn/registry.hpp"

namespace lockstep::nn {

ModelKind clstm_policy_kind();
ModelKind cnn_kind();
ModelKind cnn1d_kind();
ModelKind cnn3d_kind();
ModelKind export_kind();
ModelKind lmu_asr_kind();
ModelKind lstm_policy_kind();
ModelKind mlp_kind();
ModelKind mlp_policy_kind();
ModelKind resnet_kind();
ModelKind script_kind();
ModelKind transformer_kind();
ModelKind unet_kind();
ModelKind unet3d_kind();
ModelKind vit_kind();

} // namespace lockstep::nn
