#pragma once

#include "lockstep/config/own_keys.hpp"
#include "lockstep/nn/model.hpp"

#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

namespace lockstep::nn {

/// A linear layer whose weights begin orthogonal, with this gain, and whose biases at zero, as in
/// implementations of PPO (Engstrom et al., "Implementation matters", arXiv 2005.12729).
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
    torch::Tensor log_deviation_; ///< undefined for discrete actions
};

double action_parameters(Interface const& interface);

/// Numbers of one observation.
std::int64_t observation_size(Interface const& interface);

std::vector<config::OwnKey> head_keys(std::string const& hidden);

} // namespace lockstep::nn
