#pragma once

#include "arena/layout.hpp"
#include "lockstep/comm/communicator.hpp"
#include "lockstep/nn/model.hpp"

namespace lockstep::train {

/// Collective  over `world`
/// Throws      AgreedError 64 where a rank's parameters or model files are not rank 0's
void require_same_model(comm::Communicator const& world, Layout const& layout,
                        nn::Model const& model);

} // namespace lockstep::train
