#pragma once

#include "comm/replica_tree.hpp"
#include "comm/topology.hpp"
#include "lockstep/comm/communicator.hpp"
#include "model_files/same_code.hpp"
#include "optimizer/privacy.hpp"

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "run_setup.hpp"

namespace lockstep::train {

/// What is settled when a run is opened, and stays until its end. `world` outlives it.
struct RunFacts {
    comm::Communicator const& world;
    comm::Topology topology;
    RunSetup setup;
    torch::Device device = torch::kCPU;
    CodeHashes code{};                        ///< of what the deck names
    std::int64_t validation_hash = 0;         ///< of what is measured; 0: no samples
    std::vector<comm::TreeNode> nodes{};      ///< the subtree of each rank
    std::shared_ptr<Privacy const> privacy{}; ///< null: privacy.noise is 0
    std::int64_t initial_weights = 0;         ///< hash of those at step 0, with privacy.noise
    std::int64_t data_content = 0;            ///< of all bytes of data.train, with privacy.noise
    bool compares = false;                    ///< what hosts compute, by check.compute-every
    std::string attempt{};                    ///< identifies this attempt among all of the run

    config::Deck const& deck() const noexcept { return setup.deck; }
    /// The replicas of this rank.
    comm::TreeNode own_node() const { return nodes[static_cast<std::size_t>(world.rank())]; }
};

} // namespace lockstep::train
