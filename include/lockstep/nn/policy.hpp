#pragma once

#include "lockstep/nn/model.hpp"

namespace lockstep::nn {

/// Sequences of episodes: `sequences` of them, of `steps` steps each.
struct PolicyInput {
    torch::Tensor observations; ///< [sequences, steps, observation]
    torch::Tensor starts;       ///< [sequences, steps]: 1 where an episode begins, else 0
    torch::Tensor state;        ///< [sequences, state_size]: before the first step
};

/// What a policy makes of them.
struct PolicyOutput {
    /// [sequences, steps, parameters] of the distribution of actions: a logit for each that can be
    /// chosen; or means and then logarithms of deviations.
    torch::Tensor actions;
    torch::Tensor values; ///< [sequences, steps]: returns that are expected
    torch::Tensor state;  ///< [sequences, state_size]: after the last step
};

/// A model that acts, and judges its place: actor and critic. What it remembers from step to step
/// is not in its buffers, since each environment has a memory of its own.
class Policy : public Model {
  public:
    /// Shape  as the members of PolicyInput and PolicyOutput
    virtual PolicyOutput judge(PolicyInput const& input) = 0;
    /// Length of the state that it keeps per environment; all zeros when an episode begins.
    virtual std::int64_t state_size() const { return 0; }

    /// Shape   inputs [n, observation]; returns [n, parameters + 1], the value last, of episodes
    ///         that begin there
    /// Throws  std::out_of_range without inputs
    torch::Tensor forward(Fields const& inputs) override;
};

/// What the policy makes of the input, once its shapes were compared with those that are needed:
/// policies come from plug-ins, too.
///
/// Shape   as PolicyInput and PolicyOutput; `parameters` of the distribution of actions at each
/// step Throws  Error 64 where a shape is another one
PolicyOutput judge(Policy& policy, PolicyInput const& input, std::int64_t parameters);

} // namespace lockstep::nn
