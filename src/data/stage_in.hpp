#pragma once

#include "lockstep/comm/communicator.hpp"

#include <filesystem>
#include <vector>

namespace lockstep::data {

/// Copies files into a directory of this host, each rank of the host its part. A copy is read back
/// and compared before it gets its final name, which encodes the source's path, size and time of
/// change, and the user, who alone may read it. A copy that exists already is used if nobody but
/// this user or root can have written it, if no more users may read it than the source, and if
/// blocks all over it are those of the source; else it is made again, with a warning on standard
/// error.
///
/// Returns     the copies
/// Collective  over `host`, the ranks of one host; the same files on all ranks
/// Throws      AgreedError 66 for a missing file; 65 for one that changes meanwhile, or whose copy
///             is not the same; 73 or 74 when the directory cannot be written or is full
std::vector<std::filesystem::path> stage_in(std::vector<std::filesystem::path> const& files,
                                            std::filesystem::path const& directory,
                                            comm::Communicator const& host);

} // namespace lockstep::data
