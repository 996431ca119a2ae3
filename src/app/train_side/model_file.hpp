#pragma once

#include "lockstep/comm/communicator.hpp"

#include <string>

namespace lockstep::app {

/// `named` itself if it is a file; of a run's directory, the model that the run would test: best.h5
/// or, where there is none, the newest checkpoint.
///
/// Collective  over `world`
/// Throws      AgreedError 66 for a directory without a model
std::string model_file(comm::Communicator const& world, std::string const& named);

} // namespace lockstep::app
