#pragma once

#include "base/clean_up.hpp"
#include "checkpoint/store.hpp"
#include "lockstep/comm/communicator.hpp"

#include <filesystem>
#include <functional>
#include <memory>

namespace lockstep::measure {

/// Removes what a trial makes at `path`, if a signal ends this process while the result exists: on
/// rank 0; the others wait for that, since their end, as a loss, would end rank 0 before.
std::unique_ptr<CleanUp> removal_by_signal(comm::Communicator const& world,
                                           std::filesystem::path const& path);

/// Makes a directory for a trial below `parent`, and removes it at the end, also when `work` throws
/// an error that all ranks agreed on.
///
/// Collective  over `world`
/// Throws      AgreedError 73 when it cannot be made, and what `work` throws
void in_trial_directory(comm::Communicator const& world, std::filesystem::path const& parent,
                        std::function<void(std::filesystem::path const&)> const& work);

} // namespace lockstep::measure
