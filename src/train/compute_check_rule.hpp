#pragma once

#include "batches/data_module.hpp"
#include "batches/workload.hpp"
#include "lockstep/comm/communicator.hpp"
#include "lockstep/config/deck.hpp"

#include <torch/types.h>

#include <string>

namespace lockstep::train {

/// Whether what hosts compute is compared in a run, by check.compute-every and where two hosts
/// must compute the same bits: the only rule.
struct ComputeCheckRule {
    bool compares = false;
    std::string
        remark; ///< why not, though the deck asks for it; empty: it does, or one rank is alone
};

/// `deck`: settled.
///
/// Collective  over `world`
ComputeCheckRule compute_check_rule(comm::Communicator const& world, config::Deck const& deck,
                                    DataModule const& data, torch::Device device);

} // namespace lockstep::train
