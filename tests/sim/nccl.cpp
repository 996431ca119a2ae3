// NCCL's semantics between the simulated devices of one host's processes: calls are kernels of a
// stream, the sends and receives of a group proceed together, starting takes a while, and a failure
// is told by ncclCommGetAsyncError while the kernel hangs until ncclCommAbort.

#include "nccl.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <unistd.h>
#include <utility>

#include "nccl_communicator.hpp"
#include "nccl_kernels.hpp"
#include "options.hpp"
#include "runtime.hpp"

namespace sim = lockstep::sim;

namespace {

thread_local std::string last_error;

void pause(double us) {
    std::this_thread::sleep_for(std::chrono::duration<double, std::micro>(us));
}

struct Group {
    int depth = 0;
    std::vector<sim::NcclCall> calls;
};
thread_local Group group;

/// What is thrown here is a mistake that the device found: told as a result.
template <class Body>
ncclResult_t guarded(Body const& body) {
    try {
        return body();
    } catch (std::exception const& error) {
        last_error = error.what();
        return ncclInvalidUsage;
    }
}

ncclResult_t take(sim::NcclCall const& call) {
    if (group.depth > 0) {
        group.calls.push_back(call);
        return ncclSuccess;
    }
    return guarded([&] { return sim::launch_calls(*call.comm, {call}, last_error); });
}

} // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
    static std::atomic<int> made = 0;
    *id = {};
    std::snprintf(id->internal, sizeof id->internal, "/lockstep-sim-%d-%d", ::getpid(), ++made);
    return guarded([&] {
        sim::Links::create(id->internal);
        return ncclSuccess;
    });
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
    if (rank < 0 || rank >= ranks || ranks > sim::max_ranks) {
        last_error = "there are at most " + std::to_string(sim::max_ranks) + " ranks";
        return ncclInvalidArgument;
    }
    return guarded([&] {
        auto* const made = *comm = new ncclComm(id.internal, rank, ranks);
        made->starter = std::thread([made] {
            auto& shared = made->links.shared();
            shared.process[made->rank] = ::getpid();
            ++shared.joined;
            while (shared.joined < made->ranks && !made->aborted) {
                pause(200);
            }
            if (!made->aborted) {
                made->state = ncclSuccess;
            }
        });
        if (config != nullptr && config->blocking == 0) {
            return ncclInProgress;
        }
        made->starter.join();
        return ncclSuccess;
    });
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* result) {
    *result = static_cast<ncclResult_t>(comm->state.load());
    return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
    if (comm->starter.joinable()) {
        comm->starter.join();
    }
    comm->state = ncclInProgress;
    comm->starter = std::thread([comm] {
        while (comm->running > 0 && !comm->aborted) {
            pause(100);
        }
        auto& shared = comm->links.shared();
        ++shared.left; // with the others, as NCCL does
        while (shared.left < comm->ranks && !comm->aborted) {
            pause(100);
        }
        comm->state = ncclSuccess;
    });
    return ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
    if (comm->rank == 0) {
        sim::Links::unlink(comm->name);
    }
    delete comm;
    return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
    comm->links.shared().gone[comm->rank] = true;
    comm->aborted = true;
    while (comm->running > 0) {
        pause(100);
    }
    sim::Links::unlink(comm->name);
    delete comm;
    return ncclSuccess;
}

char const* ncclGetErrorString(ncclResult_t result) {
    switch (result) {
    case ncclSuccess:
        return "no error";
    case ncclUnhandledCudaError:
        return "unhandled cuda error";
    case ncclSystemError:
        return "unhandled system error";
    case ncclInvalidArgument:
        return "invalid argument";
    case ncclInvalidUsage:
        return "invalid usage";
    case ncclRemoteError:
        return "remote process exited or there was a network error";
    case ncclInProgress:
        return "NCCL operation in progress";
    case ncclInternalError:
        break;
    }
    return "internal error";
}

char const* ncclGetLastError(ncclComm_t comm) {
    if (comm != nullptr) {
        std::lock_guard const lock(comm->mutex);
        if (!comm->reason.empty()) {
            last_error = comm->reason;
        }
    }
    return last_error.c_str();
}

ncclResult_t ncclAllReduce(void const* from, void* into, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t, ncclComm_t comm, cudaStream_t stream) {
    return take({comm, stream, sim::NcclCall::Kind::all_reduce, from, into, count, type});
}
ncclResult_t ncclSend(void const* from, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
    return take({comm, stream, sim::NcclCall::Kind::message, from, nullptr, count, type, peer});
}
ncclResult_t ncclRecv(void* into, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
    return take({comm, stream, sim::NcclCall::Kind::message, nullptr, into, count, type, peer});
}

ncclResult_t ncclGroupStart() {
    ++group.depth;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
    if (--group.depth > 0 || group.calls.empty()) {
        return ncclSuccess;
    }
    auto const calls = std::exchange(group.calls, {});
    bool const one = std::all_of(calls.begin(), calls.end(), [&](sim::NcclCall const& each) {
        return each.comm == calls.front().comm && each.stream == calls.front().stream;
    });
    if (!one) {
        last_error = "a group of several communicators or streams is not simulated";
        return ncclInvalidUsage;
    }
    return guarded([&] { return sim::launch_calls(*calls.front().comm, calls, last_error); });
}

ncclResult_t ncclMemAlloc(void** data, std::size_t bytes) {
    *data = sim::allocate(bytes);
    return *data != nullptr ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t ncclMemFree(void* data) {
    auto const result = guarded([&] {
        sim::synchronize_device(sim::device_of(data));
        return ncclSuccess;
    });
    sim::free(data);
    return result;
}

ncclResult_t ncclCommRegister(ncclComm_t, void*, std::size_t, void** handle) {
    *handle = nullptr;
    return ncclSuccess;
}
ncclResult_t ncclCommDeregister(ncclComm_t, void*) {
    return ncclSuccess;
}
ncclResult_t ncclCommWindowRegister(ncclComm_t, void*, std::size_t, ncclWindow_t* window, int) {
    *window = nullptr;
    return ncclSuccess;
}
ncclResult_t ncclCommWindowDeregister(ncclComm_t, ncclWindow_t) {
    return ncclSuccess;
}

} // extern "C"
