#pragma once

#include "lockstep/config/own_keys.hpp"
#include "lockstep/nn/policy.hpp"

#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/rnn.h>

#include <optional>

namespace lockstep::nn {

/// A linear layer whose weights begin orthogonal, with this gain, and whose biases at zero, as
/// PPO's implementations have them (Engstrom et al., "Implementation matters", arXiv 2005.12729).
torch::nn::Linear orthogonal_linear(std::int64_t from, std::int64_t to, double gain);

/// Hidden layers with tanh or ReLU, and a last one of `outputs` whose first weights have `gain`.
torch::nn::Sequential head(config::OwnValues const& values, std::int64_t inputs,
                           std::int64_t outputs, double gain);
/// Runs a head; again in backward where its inner values are not kept.
torch::Tensor run_head(torch::nn::Sequential& head, torch::Tensor const& inputs, bool recompute);
double head_parameters(config::OwnValues const& values, double inputs, double outputs);

/// What the end of actor and critic share: the parameters of the actions' distribution.
class ActionParameters : public torch::nn::Module {
  public:
    explicit ActionParameters(Interface const& interface);
    /// Shape  actor [sequences, steps, actions]
    torch::Tensor of(torch::Tensor const& actor) const;

  private:
    torch::Tensor log_deviation_; ///< undefined where actions are chosen from a few
};

double action_parameters(Interface const& interface);

/// Numbers of one observation.
std::int64_t observation_size(Interface const& interface);

/// Where sequences are cut so that episodes begin at first steps alone: a stretch is one call of a
/// fused LSTM, several times as fast as its steps one by one. Waits for a device.
///
/// Shape  starts [sequences, steps]; returns ends, of which the last is `steps`
std::vector<std::int64_t> stretch_ends(torch::Tensor const& starts);

/// While it exists an LSTM computes in float32 where autocast says float16 on a CPU: oneDNN has
/// none.
class ExactLstm {
  public:
    explicit ExactLstm(torch::Device device);

  private:
    std::optional<c10::impl::ExcludeDispatchKeyGuard> without_autocast_;
};

/// Runs a cell over sequences, cut at `ends`; where an episode begins, it begins with zeros.
///
/// Shape  inputs [sequences, steps, …]; state [sequences, 2 × units]: what the cell shows and what
///        it keeps; returns [sequences, steps, units], and replaces `state`
torch::Tensor run_cell(torch::nn::LSTMCell& cell, torch::Tensor const& inputs,
                       torch::Tensor const& starts, std::vector<std::int64_t> const& ends,
                       torch::Tensor& state);

std::vector<config::OwnKey> head_keys(std::string const& hidden);

} // namespace lockstep::nn
