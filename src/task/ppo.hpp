#pragma once

#include "lockstep/config/own_keys.hpp"
#include "rl/advantages.hpp"

#include <cstdint>

namespace lockstep::task {

/// The keys of a deck's [task] for proximal policy optimisation.
struct PpoOptions {
    std::int64_t environments = 4;    ///< of each replica
    std::int64_t rollout_steps = 128; ///< of each environment in an iteration
    std::int64_t ppo_epochs = 4;      ///< over what was collected
    std::int64_t sequence =
        0; ///< steps that a policy with a memory learns from as one sequence; 0: all
    rl::Discount discount;
    double reward_scale = 1; ///< of what is learnt; reported returns are not scaled
    double clip = 0.2;
    bool clip_values = true;
    double value_weight = 0.5;
    double entropy_weight = 0.01;
    bool normalise_advantages = true;
    std::int64_t episodes = 0;             ///< after which a run ends; 0: no limit
    std::int64_t evaluation_episodes = 20; ///< of a validation
    std::int64_t test_episodes = 100;
    bool greedy = true; ///< the likeliest actions in evaluation, else drawn ones

    explicit PpoOptions(config::OwnValues const& values);
    PpoOptions() = default;
};

/// The options of a deck.
///
/// Throws  Error 64 for a key that the task does not have, or a value that it cannot have
PpoOptions ppo_options(config::Task const& chosen);

/// Indices of a batch's fields.
struct PpoFields {
    enum Inputs : std::size_t { observations, starts, state };
    enum Targets : std::size_t { actions, log_probabilities, advantages, returns, values };
};

} // namespace lockstep::task
