#pragma once

#include "lockstep/nn/model.hpp"

namespace lockstep::nn {

/// Sequences of episodes: `sequences` of them, of `steps` steps each.
struct PolicyInput {
    torch::Tensor observations; ///< [sequences, steps, observation]
    torch::Tensor starts;       ///< [sequences, steps]: 1 where an episode begins, else 0
    torch::Tensor state;        ///< [sequences, state_size]: before the first step
};

/// What a policy computes from them.
struct PolicyOutput {
    /// [sequences, steps, parameters] of the distribution of actions: a logit for each that can be
    /// chosen; or means and then logarithms of deviations.
    torch::Tensor actions;
    torch::Tensor values; ///< [sequences, steps]: expected returns
    torch::Tensor state;  ///< [sequences, state_size]: after the last step
};

/// A model that chooses actions and estimates values: actor and critic. What it remembers from step
/// to step is not in its buffers, since each environment has a memory of its own.
class Policy : public Model {
  public:
    /// Shape  as the members of PolicyInput and PolicyOutput
    virtual PolicyOutput judge(PolicyInput const& input) = 0;
    /// Length of the state that it keeps per environment; all zeros when an episode begins.
    virtual std::int64_t state_size() const { return 0; }

    /// Shape   inputs [n, observation]; returns [n, parameters + 1], the value last; an episode
    ///         begins with each observation
    /// Throws  std::out_of_range without inputs
    torch::Tensor forward(Fields const& inputs) override;
};

/// Calls the policy's `judge` and checks the shapes of its output, since policies come from
/// plug-ins, too.
///
/// Shape   as PolicyInput and PolicyOutput, with `parameters` numbers per step for the distribution
///         of actions
/// Throws  Error 64 where a shape differs
PolicyOutput judge(Policy& policy, PolicyInput const& input, std::int64_t parameters);

} // namespace lockstep::nn
