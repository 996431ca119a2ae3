#pragma once

namespace lockstep {

/// Lets the library do what concerns the whole process, as in the program `lockstep`: for a program
/// that has its process for itself. Link Lockstep::process, and call this at the start of main().
/// The library's calls then
/// - set glibc's allocator up for training, and limit the memory of this process (RLIMIT_DATA), so
///   that asking for too much is an error (71);
/// - let all ranks write checkpoints through MPI-IO, and hide a refused write from HDF5, where the
///   other ranks would wait; otherwise one rank of each host writes;
/// - say why MPI does not start, where Open MPI ends the process;
/// - name the operator of an exported program that crashes;
/// - leave SIGUSR1, SIGUSR2 and SIGXCPU ignored after the last `SignalRequests`.
///
/// The program gets an `_exit` and MPI-IO functions that call those of the libraries. Calls after
/// the first one have no effect.
void own_process() noexcept;

} // namespace lockstep
