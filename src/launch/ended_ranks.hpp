#pragma once

#include <string>
#include <vector>

namespace lockstep::launch {

/// Ends those of these processes of this host that are ranks of this launch (LOCKSTEP_LAUNCH), and
/// waits until they are gone, but no longer than a few seconds. What they share through /dev/shm
/// for MPI, which nobody else removes once their launcher is dead, goes with them.
///
/// Returns  those that are still there
std::vector<int> end_ranks(std::vector<int> const& processes, std::string const& launch);

/// Removes what an mpirun of ours that was killed has left in $TMPDIR.
void remove_session(int mpirun);

} // namespace lockstep::launch
