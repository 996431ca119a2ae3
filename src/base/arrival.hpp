#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace lockstep {

/// The directory's name within a run's directory.
inline constexpr char const* arrivals_name = "arrivals";

/// Where ranks leave a mark, a file named by the rank's number, before MPI connects them: it shows
/// which ranks did not arrive. LOCKSTEP_ARRIVALS where a launcher looks for them; else the
/// directory that Open MPI gives a job on its only host; else none (an empty path).
std::filesystem::path arrivals_directory();

/// The rank that the launcher has given this process, known before MPI starts; 0 for a process that
/// runs alone.
int launched_rank();

/// The number of ranks that the launcher says it has started; 0 where no launcher says so.
int launched_ranks();

/// Whether a launcher of PyTorch's, which passes nothing on to MPI, has started this process.
bool torchrun_launched();

/// Leaves the mark of this rank. A failure is not reported: messages then merely name this rank as
/// missing.
void leave_arrival_mark(std::filesystem::path const& directory);

/// The ranks from 0 to `ranks` that have left no mark or, if all have, the ranks of this host that
/// are stopped; empty if none is known to be missing.
std::vector<int> missed_ranks(std::filesystem::path const& directory, int ranks);

/// The processes of the ranks from 0 to `ranks` that have left their marks on this host, by rank.
std::map<int, int> processes_here(std::filesystem::path const& directory, int ranks);

/// What an error says of missing ranks: "it has not started, or is stopped".
std::string missing_text(std::vector<int> const& missed);

/// Whether any rank has left its mark.
bool any_arrived(std::filesystem::path const& directory);

} // namespace lockstep
