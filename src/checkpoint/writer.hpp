#pragma once

#include "checkpoint/snapshot.hpp"
#include "checkpoint/space.hpp"
#include "lockstep/comm/communicator.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace lockstep::checkpoint {

/// A checkpoint that is complete and durable.
struct Written {
    std::filesystem::path path;
    std::uint64_t bytes = 0;
    double seconds = 0;                  ///< wall time on this rank
    bool collective = false;             ///< whether it was written as meant to; slow if not
    std::vector<std::string> given_up{}; ///< older ones that made room for it, on rank 0
};

/// The name under which `attempt` writes the file before it is complete.
std::filesystem::path partial_path(std::filesystem::path const& path, std::string const& attempt);

/// Writes one checkpoint from all ranks. In order: rank 0 lays the file out under its partial name
/// and claims its disk space; all ranks write their parts by collective calls; each reads its own
/// parts back and compares them; all ranks hash blocks of the file; rank 0 writes the checksum
/// header; all sync; rank 0 renames and syncs the directory. Until the rename nothing that was
/// there before is touched; when a phase fails, the partial file is removed.
///
/// A failure of one rank within a collective HDF5 call cannot be unwound: the others may wait in
/// theirs for ever. Hence everything that can be checked beforehand is agreed on beforehand: that
/// the parts tile the arrays, that the disk has room, that every rank sees the file.
///
/// On NFS, or with LOCKSTEP_CHECKPOINT_WRITER = gather, rank 0 writes the parts that the others
/// send it; with hosts, the first rank of each host writes those of its host. The bytes are the
/// same.
///
/// `still_ours` is called on rank 0 before the rename, and throws where another attempt of the job
/// has taken the directory over. `make_room` is called on rank 0 as `try_space` says.
///
/// Only the calling thread may use HDF5 during the call. A call on a thread of its own needs a
/// communicator of its own and MPI_THREAD_MULTIPLE.
///
/// Shape       the parts of all ranks tile each array; a rank may hold none of it
/// Units       seconds are wall time on this rank
/// Collective  over `comm`; same arrays, views, path and attempt on all ranks
/// Throws      AgreedError on every rank when any rank fails: 70 for parts that do not tile, 73
///             when the file cannot be created, 74 for a full disk or a write that went wrong
Written write(comm::Communicator const& comm, Snapshot const& snapshot,
              std::filesystem::path const& path, std::string const& attempt,
              std::function<void()> const& still_ours = {}, MakeRoom const& make_room = {});

} // namespace lockstep::checkpoint
