#pragma once

#include <torch/nn/module.h>

namespace lockstep::train {

/// Gives a parameter or a buffer other values, perhaps on another device: Tensor::set_data, but
/// also for devices that torch knows only by a plug-in.
void replace(torch::Tensor const& tensor, torch::Tensor const& values);

/// Moves a module's parameters and buffers to a device of any kind, as torch::nn::Module::to does;
/// also to one that torch knows only by a plug-in.
void place(torch::nn::Module const& module, torch::Device device);

} // namespace lockstep::train
