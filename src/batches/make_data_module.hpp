#pragma once

#include "batches/data_module.hpp"
#include "batches/workload.hpp"
#include "lockstep/comm/communicator.hpp"
#include "optimizer/privacy.hpp"

#include <memory>

namespace lockstep::train {

/// What a data module is made from; all of it outlives the data module.
struct DataModuleParts {
    comm::Communicator const& world;
    config::Deck const& deck;
    Workload const& work;
    comm::TreeNode own; ///< replicas of this rank
    torch::Device device;
    /// Draws the samples where the deck asks for that; null where none are drawn.
    std::shared_ptr<Privacy const> privacy{};
};

/// Makes the data module of a deck: for data sets, or for episodes.
///
/// Throws  Error 64 when the data, or what is collected, cannot be divided into steps
std::unique_ptr<DataModule> make_data_module(DataModuleParts const& parts);

/// Makes the data module for episodes.
///
/// Throws  Error 64 when the model is not a policy, or when what is collected cannot be divided
///         into whole steps; 69 where the program was built without reinforcement learning
std::unique_ptr<DataModule> make_rollout_module(DataModuleParts const& parts);

} // namespace lockstep::train
