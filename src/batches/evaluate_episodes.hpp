#pragma once

#include "batches/evaluate.hpp"
#include "lockstep/comm/communicator.hpp"
#include "lockstep/nn/policy.hpp"
#include "rl/environment_set.hpp"

#include <functional>
#include <optional>

namespace lockstep::train {

struct EpisodeOptions {
    std::int64_t episodes = 1;
    bool greedy = true;     ///< the likeliest actions, else drawn ones
    std::uint64_t seed = 0; ///< of the episodes; they are the same at every call
    std::vector<std::int64_t> observation_shape;
    torch::Device device = torch::kCPU;
    config::Precision precision{};
    StopEvaluation stop{};
};

/// Plays episodes, ten at a time on one of the ranks: which ones play together, and hence every bit
/// of the result, does not depend on the number of ranks. Metrics are the mean, deviation, least
/// and largest return, and the mean length; the loss is the mean return with its sign turned.
///
/// Collective  over `world`; same policy on all ranks
/// Throws      AgreedError when a rank fails
/// Returns     nothing when `options.stop` ended it early
std::optional<Evaluation> evaluate_episodes(comm::Communicator const& world, nn::Policy& policy,
                                            rl::EnvironmentMaker const& make,
                                            EpisodeOptions const& options);

} // namespace lockstep::train
