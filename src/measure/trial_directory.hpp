#pragma once

#include "checkpoint/store.hpp"
#include "lockstep/comm/communicator.hpp"

#include <filesystem>
#include <functional>

namespace lockstep::measure {

/// Makes a directory for a trial below `parent`, and removes it at the end, also when `work` throws
/// an error that all ranks agreed on.
///
/// Collective  over `world`
/// Throws      AgreedError 73 when it cannot be made, and what `work` throws
void in_trial_directory(comm::Communicator const& world, std::filesystem::path const& parent,
                        std::function<void(std::filesystem::path const&)> const& work);

} // namespace lockstep::measure
