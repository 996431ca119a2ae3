#pragma once

#include "checkpoint/snapshot.hpp"
#include "lockstep/comm/communicator.hpp"

#include <cstdint>
#include <filesystem>
#include <vector>

namespace lockstep::checkpoint {

// How the ranks' parts get into a file whose layout is written already; the bytes are the same
// either way.

/// collective: all ranks write through MPI-IO. gather: rank 0 writes what the others send it, on
/// file systems where MPI-IO is unsafe or slow. hosts: on each host the first rank writes what the
/// host's others send it, where a file system suffers from many writers.
enum class Transport { collective, gather, hosts };

/// A file whose layout is written, and where its arrays lie.
struct FilePlaces {
    std::filesystem::path path;
    std::vector<std::uint64_t> offsets; ///< of each array, in bytes from the file's begin
};

/// LOCKSTEP_CHECKPOINT_WRITER if it is set; gather on NFS, whose clients keep their writes to
/// themselves for a while, so that MPI-IO locks the whole file for each; hosts in a process of
/// another program (base/process_calls.hpp); otherwise collective.
///
/// Collective  over `comm`; rank 0's answer
/// Throws      AgreedError 64 for a variable with another value
Transport choose_transport(comm::Communicator const& comm, std::filesystem::path const& directory);

/// All ranks write through MPI-IO. If all ranks are on one host, the data may not have reached the
/// disk: sync before relying on it. Over several hosts it has, since the others read it.
///
/// Collective  over `comm`
/// Throws      AgreedError 74
/// Returns     whether HDF5 really wrote all arrays collectively
bool write_collectively(comm::Communicator const& comm, Snapshot const& snapshot,
                        FilePlaces const& places);

/// The first rank of each `group` writes the parts of all of the group, and syncs the file.
///
/// Collective  over `comm`, whose ranks are divided into groups
/// Throws      AgreedError 74; 69 from MPI
void write_by_gather(comm::Communicator const& comm, comm::Communicator const& group,
                     Snapshot const& snapshot, FilePlaces const& places);

} // namespace lockstep::checkpoint
