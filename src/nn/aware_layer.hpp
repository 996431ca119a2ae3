#pragma once

#include <torch/nn/modules/container/any.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

namespace lockstep::nn {

/// What a layer that is trained for int8 has besides its weight and bias: "input_log_scale" [1] and
/// "weight_log_scale" [outputs], natural logarithms that are learnt, and "input_zero" [1], the zero
/// point of its input: the byte that stands for 0.
inline constexpr char const* input_log_scale = "input_log_scale";
inline constexpr char const* weight_log_scale = "weight_log_scale";
inline constexpr char const* input_zero = "input_zero";

/// Rounds values to bytes of a scale, and converts them back. Gradients pass through the rounding
/// unchanged, and reach the scale (Esser et al., arXiv 1902.08153), divided by the root of the
/// number of values times the largest byte.
///
/// Shape  values, any; log_scale [1], or [n, 1, …] with a scale for each of the first extent;
///        zero [1]; returns as values
torch::Tensor rounded_to_bytes(torch::Tensor const& values, torch::Tensor const& log_scale,
                               torch::Tensor const& zero, double min, double max);

/// A convolution; if `aware` is set, its input and weight are rounded to int8.
torch::nn::AnyModule convolution(torch::nn::Conv1dOptions const& options, bool aware);
torch::nn::AnyModule convolution(torch::nn::Conv2dOptions const& options, bool aware);
torch::nn::AnyModule convolution(torch::nn::Conv3dOptions const& options, bool aware);

/// The same for a fully connected layer; if `aware` is not set, it may get an adapter.
torch::nn::AnyModule fully_connected(torch::nn::LinearOptions const& options, bool aware);
torch::nn::AnyModule fully_connected(std::int64_t inputs, std::int64_t outputs, bool aware);

} // namespace lockstep::nn
