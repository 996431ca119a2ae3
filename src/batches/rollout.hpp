#pragma once

#include "lockstep/nn/policy.hpp"
#include "lockstep/task/task.hpp"
#include "rl/advantages.hpp"
#include "rl/environment_set.hpp"
#include "task/ppo.hpp"

#include <span>
#include <vector>

namespace lockstep::train {

/// What one replica has seen and done in an iteration, and its environments.
class Rollout {
  public:
    struct Options {
        rl::EnvironmentMaker const& make;
        task::PpoOptions options;
        std::vector<std::int64_t> observation_shape;
        std::int64_t state_size = 0; ///< of the policy
        std::int64_t sequence = 1;   ///< steps that are trained on as one sequence
        std::uint64_t seed = 0;
        std::int64_t replica = 0;
        torch::Device device = torch::kCPU;
        config::Precision precision{};
    };

    explicit Rollout(Options const& parts);

    /// Acts for options.rollout_steps steps in every environment, and estimates advantages.
    void collect(nn::Policy& policy);

    /// Sequences that `collect` makes: each of `sequence()` steps of one environment.
    std::int64_t sequences() const { return per_environment_ * set_.size(); }
    std::int64_t sequence() const { return sequence_; }
    /// The advantages of one sequence.
    ///
    /// Shape  into [sequence]
    void advantages(std::int64_t which, std::span<float> into) const;

    /// Sequences as a batch of task ppo, with standardised advantages.
    task::Tensors batch(std::vector<std::int64_t> const& which, rl::Scale const& scale) const;

    rl::Episodes const& episodes() const { return set_.episodes(); } ///< ended in this iteration
    double episodes_ever() const { return set_.episodes_ever(); }

    /// All that changes, as a checkpoint keeps it.
    std::span<std::byte> floats(); ///< float32
    std::span<std::byte> reals();  ///< float64; as of the last `collect` or `restored`
    void restored();               ///< after both have been filled

  private:
    /// One of the arrays, whose first extent is the time step.
    torch::Tensor array(std::vector<std::int64_t> shape, std::int64_t& at) const;
    nn::PolicyOutput judge(nn::Policy& policy, torch::Tensor const& observations,
                           torch::Tensor const& starts, torch::Tensor const& state) const;
    void act(nn::Policy& policy, std::int64_t step);
    torch::Tensor sequences_of(torch::Tensor const& of_steps, torch::Tensor const& which) const;

    task::PpoOptions options_;
    std::vector<std::int64_t> observation_shape_;
    torch::Device device_;
    config::Precision precision_;
    rl::EnvironmentSet set_;
    std::int64_t sequence_;
    std::int64_t per_environment_; ///< sequences
    std::int64_t parameters_;      ///< of a distribution of actions

    torch::Tensor all_; ///< all of the following, one after the other
    // [steps, environments, …], but starts, which has a row more.
    torch::Tensor observations_;
    torch::Tensor actions_;
    torch::Tensor log_probabilities_;
    torch::Tensor rewards_;
    torch::Tensor values_;
    torch::Tensor starts_;
    torch::Tensor advantages_;
    torch::Tensor states_;      ///< [sequences of an environment, environments, state]
    torch::Tensor state_;       ///< [environments, state]: what the policy remembers now
    std::vector<double> reals_; ///< of the environments
};

} // namespace lockstep::train
