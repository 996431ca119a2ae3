#pragma once

#include "lockstep/rl/environment.hpp"
#include "rl/draws.hpp"

#include <torch/types.h>

#include <span>

namespace lockstep::task {

/// The log-probabilities of actions, and the entropy of the policy where it took them.
struct ActionProbabilities {
    torch::Tensor log_probabilities; ///< [sequences, steps]
    torch::Tensor entropy;           ///< [sequences, steps]
};

/// For discrete actions, or actions of independent normal numbers.
///
/// Shape  parameters [sequences, steps, parameters] as nn::PolicyOutput::actions, float32; actions
///        [sequences, steps, action_size]
ActionProbabilities action_probabilities(torch::Tensor const& parameters,
                                         torch::Tensor const& actions, bool continuous);

/// Draws an action, or takes the likeliest where `draws` is null. In double, on the CPU, so that
/// the action depends only on the arguments.
///
/// Shape  parameters [parameters]; action [action_size]
void choose_action(std::span<float const> parameters, bool continuous, rl::Draws* draws,
                   std::span<float> action);

} // namespace lockstep::task
