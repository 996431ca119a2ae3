#pragma once

#include <torch/nn/module.h>

namespace lockstep::train {

/// Gives a parameter or a buffer other values, perhaps on another device: Tensor::set_data, without
/// its refusal of devices that came to torch as plug-ins.
void replace(torch::Tensor const& tensor, torch::Tensor const& values);

/// Moves a module's parameters and buffers to a device of any kind, as torch::nn::Module::to does;
/// also to one that came to torch as a plug-in.
void place(torch::nn::Module const& module, torch::Device device);

} // namespace lockstep::train
