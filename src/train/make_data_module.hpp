#pragma once

#include "lockstep/comm/communicator.hpp"
#include "train/privacy.hpp"

#include <memory>

#include "data_module.hpp"
#include "workload.hpp"

namespace lockstep::train {

/// What a data module is made from; all of it outlives the data module.
struct DataModuleParts {
    comm::Communicator const& world;
    config::Deck const& deck;
    Workload const& work;
    comm::TreeNode own; ///< replicas of this rank
    torch::Device device;
    /// What draws samples where the deck says so; null where none will be drawn.
    std::shared_ptr<Privacy const> privacy{};
};

/// The data module of a deck: of data sets, or of episodes.
///
/// Throws  Error 64 when the data, or what is collected, cannot be dealt to steps
std::unique_ptr<DataModule> make_data_module(DataModuleParts const& parts);

/// That of episodes.
///
/// Throws  Error 64 when the model is no policy, or when what is collected cannot be dealt to whole
///         steps; 69 where the program was built without reinforcement learning
std::unique_ptr<DataModule> make_rollout_module(DataModuleParts const& parts);

} // namespace lockstep::train
