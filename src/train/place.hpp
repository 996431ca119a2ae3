#pragma once

#include <torch/nn/module.h>

namespace lockstep::train {

/// Gives a parameter or a buffer other values, perhaps on another device: Tensor::set_data, without
/// its refusal of devices that came to torch as plug-ins.
void replace(torch::Tensor const& tensor, torch::Tensor const& values);

/// Puts a module's parameters and buffers onto a device, of any kind: torch::nn::Module::to.
void place(torch::nn::Module const& module, torch::Device device);

} // namespace lockstep::train
