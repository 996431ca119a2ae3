#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::measure {

/// Where two runs begin to differ, by the hashes of weights in their records (monitor.weight-hash):
/// the first step, the first parameter in the first checkpoints that show it, a replica that
/// differed from the others of its run, and where the memory of each run lay. Lines for people;
/// none where the paths are not runs, the records have no hashes, or none differs.
///
/// Throws  Error 66 or 65 when a checkpoint cannot be read
std::vector<std::string> where_runs_part(std::filesystem::path const& a,
                                         std::filesystem::path const& b);

} // namespace lockstep::measure
