#pragma once

#include "comm/replica_tree.hpp"
#include "lockstep/comm/communicator.hpp"
#include "lockstep/config/deck.hpp"
#include "lockstep/nn/model.hpp"
#include "lockstep/task/task.hpp"

#include <memory>
#include <vector>

namespace lockstep::train {

/// A batch of zeros.
task::Tensors zero_batch(task::Samples const& samples, std::int64_t count, torch::Device device);

/// Forward and backward passes per second of a throw-away instance of the model on made-up samples,
/// while all ranks do the same.
///
/// Collective  over `world`
/// Returns     of each rank, the same on all
std::vector<double> measured_speeds(comm::Communicator const& world, config::Deck const& deck,
                                    std::shared_ptr<nn::Model> model, task::Task const& task,
                                    task::Samples const& samples, torch::Device device);

} // namespace lockstep::train
