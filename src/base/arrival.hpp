#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace lockstep {

/// The directory's name where it lies in a run's.
inline constexpr char const* arrivals_name = "arrivals";

/// Where ranks leave a mark, a file with the rank's number, before they meet in MPI: what names
/// those that did not come. LOCKSTEP_ARRIVALS where a launcher looks for them; else the directory
/// that Open MPI gives a job on its only host; else none, which is empty.
std::filesystem::path arrivals_directory();

/// The rank that the launcher has given this process, before MPI says it; 0 for one that is alone.
int launched_rank();

/// The number of ranks that the launcher says it has started; 0 where no launcher says so.
int launched_ranks();

/// Leaves the mark of this rank. Where that fails nobody is told: it is missed in messages alone.
void leave_arrival_mark(std::filesystem::path const& directory);

/// The ranks from 0 to `ranks` that have left no mark, or, where all have, those of this host that
/// are stopped; empty where nobody is known to be missed.
std::vector<int> missed_ranks(std::filesystem::path const& directory, int ranks);

/// Whether any rank has left its mark.
bool any_arrived(std::filesystem::path const& directory);

/// "rank 3", "ranks 0, 1, 2 and 5 more".
std::string ranks_text(std::vector<int> const& ranks);

} // namespace lockstep
