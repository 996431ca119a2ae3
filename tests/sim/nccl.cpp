// NCCL's semantics between the simulated devices of one host's processes: calls are kernels of a
// stream, the sends and receives of a group proceed together, starting takes a while, and a failure
// is told by ncclCommGetAsyncError while the kernel hangs until ncclCommAbort.

#include "nccl.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <thread>
#include <unistd.h>
#include <utility>

#include "links.hpp"
#include "options.hpp"
#include "runtime.hpp"

namespace sim = lockstep::sim;

namespace {

thread_local std::string last_error;

void pause(double us) {
    std::this_thread::sleep_for(std::chrono::duration<double, std::micro>(us));
}

} // namespace

struct ncclComm {
    ncclComm(std::string name_of_links, int own_rank, int all_ranks)
        : name(std::move(name_of_links)), links(name, own_rank, all_ranks), rank(own_rank),
          ranks(all_ranks) {}
    ~ncclComm() {
        if (starter.joinable()) {
            starter.join();
        }
    }

    /// Called while a kernel makes no progress. False: it never will.
    bool may_wait(int turn) {
        if (aborted) {
            return false;
        }
        if (turn % 512 == 511) {
            int const gone = links.gone();
            if (gone >= 0) {
                fail(ncclRemoteError, "rank " + std::to_string(gone) + " is gone");
            }
        }
        if (turn > 64) {
            pause(20);
        } else {
            std::this_thread::yield();
        }
        return true;
    }
    void fail(ncclResult_t result, std::string const& text) {
        std::lock_guard const lock(mutex);
        if (state == ncclSuccess) {
            reason = text;
            state = result;
        }
    }
    /// All transfers; false: aborted.
    bool carry_out(std::vector<sim::Transfer>& transfers) {
        for (int idle = 0;; ++idle) {
            if (std::all_of(transfers.begin(), transfers.end(),
                            [](sim::Transfer const& each) { return each.done(); })) {
                return true;
            }
            std::string wrong;
            idle = links.move(transfers, wrong) ? 0 : idle;
            if (!wrong.empty()) {
                fail(ncclInvalidUsage, wrong);
                while (may_wait(0)) {
                    pause(1000);
                }
            }
            if (!may_wait(idle)) {
                return false;
            }
        }
    }

    std::string name;
    sim::Links links;
    int rank;
    int ranks;
    std::atomic<int> state = ncclInProgress;
    std::atomic<bool> aborted = false;
    std::atomic<int> running = 0; ///< kernels
    std::mutex mutex;
    std::string reason;  ///< of a failure; guarded
    std::set<int> peers; ///< of messages, by the host's thread
    std::uint64_t launched = 0;
    std::thread starter;
};

namespace {

enum class Kind : std::uint32_t { message, all_reduce, reduce_scatter, all_gather, broadcast };

struct Call {
    ncclComm* comm = nullptr;
    cudaStream_t stream = nullptr;
    Kind kind = Kind::message;
    void const* from = nullptr;
    void* into = nullptr;
    std::size_t count = 0;
    ncclDataType_t type = ncclFloat32;
    int peer = 0; ///< or the root
};

/// A call's arrays as its kernel sees them.
struct Launched {
    Call call;
    std::byte* from = nullptr;
    std::byte* into = nullptr;
};

struct Group {
    int depth = 0;
    std::vector<Call> calls;
};
thread_local Group group;

std::size_t size_of(ncclDataType_t type) {
    switch (type) {
    case ncclUint8:
        return 1;
    case ncclFloat16:
    case ncclBfloat16:
        return 2;
    case ncclFloat32:
        return 4;
    case ncclFloat64:
    case ncclInt64:
        return 8;
    }
    return 0;
}

std::byte* kernel_view(void const* data, std::size_t bytes) {
    return data == nullptr ? nullptr : static_cast<std::byte*>(sim::kernel_view(data, bytes));
}

using Parts = std::vector<std::vector<std::byte>>;

/// As in a ring: each part of the array begins with another rank, so sums are not the tree's.
template <class T>
void sum(Parts const& parts, std::byte* into, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        auto const first = i * parts.size() / count;
        T total{};
        for (std::size_t k = 0; k < parts.size(); ++k) {
            T value;
            std::memcpy(&value, parts[(first + k) % parts.size()].data() + i * sizeof(T),
                        sizeof(T));
            total = k == 0 ? value : static_cast<T>(total + value);
        }
        std::memcpy(into + i * sizeof(T), &total, sizeof(T));
    }
}

void sum(ncclDataType_t type, Parts const& parts, std::byte* into, std::size_t count) {
    switch (type) {
    case ncclFloat32:
        return sum<float>(parts, into, count);
    case ncclFloat64:
        return sum<double>(parts, into, count);
    case ncclFloat16:
        return sum<c10::Half>(parts, into, count);
    case ncclBfloat16:
        return sum<c10::BFloat16>(parts, into, count);
    case ncclInt64:
        return sum<std::int64_t>(parts, into, count);
    case ncclUint8:
        return sum<std::uint8_t>(parts, into, count);
    }
}

/// With the whole array of every rank: simple rather than quick.
void collective(Launched const& launched) {
    auto const& [call, from, into] = launched;
    auto& comm = *call.comm;
    auto const unit = call.count * size_of(call.type);
    bool const from_root = call.kind == Kind::broadcast;
    sim::MessageHeader const header{unit, static_cast<std::uint32_t>(call.kind),
                                    static_cast<std::uint32_t>(from_root ? call.peer : 0)};
    Parts parts(static_cast<std::size_t>(comm.ranks), std::vector<std::byte>(unit));
    std::vector<sim::Transfer> transfers;
    for (std::size_t other = 0; other < parts.size(); ++other) {
        auto const rank = static_cast<int>(other);
        auto* const part = call.kind == Kind::reduce_scatter ? from + other * unit : from;
        if (!from_root || call.peer == comm.rank) {
            transfers.push_back({true, rank, part, header});
        }
        if (!from_root || call.peer == rank) {
            transfers.push_back({false, rank, parts[other].data(), header});
        }
    }
    if (!comm.carry_out(transfers)) {
        return;
    }
    if (call.kind == Kind::all_gather) {
        for (std::size_t i = 0; i < parts.size(); ++i) {
            std::memcpy(into + i * unit, parts[i].data(), unit);
        }
    } else if (from_root) {
        std::memcpy(into, parts[static_cast<std::size_t>(call.peer)].data(), unit);
    } else {
        sum(call.type, parts, into, call.count);
    }
}

/// Messages together, then collectives one after the other.
void carry_out(ncclComm& comm, std::vector<Launched> const& launched) {
    std::vector<sim::Transfer> messages;
    for (auto const& [call, from, into] : launched) {
        if (call.kind == Kind::message) {
            messages.push_back({from != nullptr,
                                call.peer,
                                from != nullptr ? from : into,
                                {call.count * size_of(call.type), 0, 0}});
        }
    }
    if (comm.carry_out(messages)) {
        for (auto const& each : launched) {
            if (each.call.kind != Kind::message) {
                collective(each);
            }
        }
    }
}

ncclResult_t launch(ncclComm& comm, std::vector<Call> const& calls) {
    if (comm.state != ncclSuccess) {
        last_error = "the communicator is not usable";
        return ncclInvalidUsage;
    }
    std::vector<sim::Range> ranges;
    std::vector<Launched> launched;
    for (auto const& call : calls) {
        if (call.peer < 0 || call.peer >= comm.ranks) {
            last_error = "no such rank";
            return ncclInvalidArgument;
        }
        auto const unit = call.count * size_of(call.type);
        auto const all = unit * static_cast<std::size_t>(comm.ranks);
        auto const out = call.kind == Kind::reduce_scatter ? all : unit;
        auto const in = call.kind == Kind::all_gather ? all : unit;
        if (call.from != nullptr && call.from != call.into) {
            ranges.push_back({call.from, out, false});
        }
        if (call.into != nullptr) {
            ranges.push_back({call.into, in, true});
        }
        if (call.kind == Kind::message) {
            comm.peers.insert(call.peer);
            sim::count_peers(comm.peers.size());
        }
        launched.push_back({call, kernel_view(call.from, out), kernel_view(call.into, in)});
    }
    auto& on = *reinterpret_cast<sim::Stream*>(calls.front().stream);
    bool const messages = calls.front().kind == Kind::message;
    ++comm.running;
    bool const is_lost = comm.rank == 1 && sim::options_of_environment().lose == comm.launched++;
    try {
        sim::launch(on, messages ? "an exchange" : "a collective call", ranges,
                    [&comm, is_lost, launched = std::move(launched)] {
                        if (is_lost) {
                            comm.fail(ncclSystemError, "the link is down");
                            while (comm.may_wait(0)) {
                                pause(1000);
                            }
                        } else {
                            carry_out(comm, launched);
                        }
                        --comm.running;
                    });
    } catch (...) {
        --comm.running;
        throw;
    }
    return ncclSuccess;
}

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

ncclResult_t take(Call const& call) {
    if (group.depth > 0) {
        group.calls.push_back(call);
        return ncclSuccess;
    }
    return guarded([&] { return launch(*call.comm, {call}); });
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
    return take({comm, stream, Kind::all_reduce, from, into, count, type});
}
ncclResult_t ncclReduceScatter(void const* from, void* into, std::size_t count, ncclDataType_t type,
                               ncclRedOp_t, ncclComm_t comm, cudaStream_t stream) {
    return take({comm, stream, Kind::reduce_scatter, from, into, count, type});
}
ncclResult_t ncclAllGather(void const* from, void* into, std::size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
    return take({comm, stream, Kind::all_gather, from, into, count, type});
}
ncclResult_t ncclBroadcast(void const* from, void* into, std::size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t stream) {
    return take({comm, stream, Kind::broadcast, from, into, count, type, root});
}
ncclResult_t ncclSend(void const* from, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
    return take({comm, stream, Kind::message, from, nullptr, count, type, peer});
}
ncclResult_t ncclRecv(void* into, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
    return take({comm, stream, Kind::message, nullptr, into, count, type, peer});
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
    bool const one = std::all_of(calls.begin(), calls.end(), [&](Call const& each) {
        return each.comm == calls.front().comm && each.stream == calls.front().stream;
    });
    if (!one) {
        last_error = "a group of several communicators or streams is not simulated";
        return ncclInvalidUsage;
    }
    return guarded([&] { return launch(*calls.front().comm, calls); });
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

} // extern "C"
