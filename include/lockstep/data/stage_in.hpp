#pragma once

#include "lockstep/comm/communicator.hpp"

#include <filesystem>
#include <string>

namespace lockstep::data {

/// Copies the files that a text names (see `expand_files`) into a directory of this host, each rank
/// of the host its part. A copy is read back and compared before it gets its name, which tells the
/// source's path, size and time of change; one that is there already is used as it is.
///
/// Returns     the copies, as a text that `DatasetOptions::files` takes
/// Collective  over `host`, the ranks of one host
/// Throws      AgreedError 66 for a missing file; 65 for one that changes meanwhile, or whose copy
///             is not the same; 73 or 74 when the directory cannot be written or is full
std::string stage_in(std::string const& files, std::filesystem::path const& directory,
                     comm::Communicator const& host);

} // namespace lockstep::data
