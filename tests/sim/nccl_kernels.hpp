#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "nccl.h"

namespace lockstep::sim {

/// A call of NCCL's that a kernel will carry out.
struct NcclCall {
    enum class Kind { message, all_reduce };

    ncclComm* comm = nullptr;
    cudaStream_t stream = nullptr;
    Kind kind = Kind::message;
    void const* from = nullptr;
    void* into = nullptr;
    std::size_t count = 0;
    ncclDataType_t type = ncclFloat32;
    int peer = 0; ///< of a message
};

/// Launches the calls of a group, of one communicator and one stream, as one kernel: messages
/// together, then sums one after the other.
///
/// Throws  std::runtime_error for a mistake in the use of memory
/// Returns whether NCCL would take them; the reason is in `why` if not
ncclResult_t launch_calls(ncclComm& comm, std::vector<NcclCall> const& calls, std::string& why);

} // namespace lockstep::sim
