#pragma once

#include "checkpoint/snapshot.hpp"
#include "lockstep/comm/communicator.hpp"

#include <cstdint>
#include <filesystem>
#include <vector>

namespace lockstep::checkpoint {

// How the ranks' parts get into a file that is laid out; the bytes are the same either way.

/// All ranks write through MPI-IO; rank 0 writes what the others send it, on file systems where
/// MPI-IO is unsafe or slow.
enum class Transport { collective, gather };

/// LOCKSTEP_CHECKPOINT_WRITER if it is set; gather on NFS, whose clients keep their writes to
/// themselves for a while, so that MPI-IO locks the whole file for each; otherwise collective.
///
/// Collective  over `comm`; rank 0's answer
/// Throws      AgreedError 64 for a variable that is neither
Transport choose_transport(comm::Communicator const& comm, std::filesystem::path const& directory);

/// `offsets` are those of the arrays in the file. What ranks of one host write is on its way to the
/// disk, not there: sync before relying on it. Over several hosts it is there, as the others read
/// it.
///
/// Collective  over `comm`
/// Throws      AgreedError 74
/// Returns     whether HDF5 really wrote all arrays collectively
bool write_collectively(comm::Communicator const& comm, Snapshot const& snapshot,
                        std::filesystem::path const& file,
                        std::vector<std::uint64_t> const& offsets);

/// `offsets` are those of the arrays in the file.
///
/// Collective  over `comm`
/// Throws      AgreedError 74; 69 from MPI
void write_by_gather(comm::Communicator const& comm, Snapshot const& snapshot,
                     std::filesystem::path const& file, std::vector<std::uint64_t> const& offsets);

} // namespace lockstep::checkpoint
