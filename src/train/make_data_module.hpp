#pragma once

#include "lockstep/comm/communicator.hpp"

#include "data_module.hpp"
#include "workload.hpp"

namespace lockstep::train {

/// What a data_module is made from; all of it outlives the data module.
struct DataModuleParts {
    comm::Communicator const& world;
    config::Deck const& deck;
    Workload const& work;
    comm::TreeNode own; ///< replicas of this rank
    torch::Device device;
};

/// The data module of a deck: of data sets, or of episodes.
///
/// Throws  Error 64 when the data, or what is collected, cannot be dealt to steps
std::unique_ptr<DataModule> make_data_module(DataModuleParts const& parts);

} // namespace lockstep::train
