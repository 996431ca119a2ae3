#include "comm/nccl.hpp"

#include "base/text.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <optional>

#include "nccl_state.hpp"

namespace lockstep::comm {

namespace {

void check_local(ncclResult_t result, std::string_view call) {
    if (result != ncclSuccess) {
        throw Error(ExitCode::unavailable,
                    {concat(call, " failed"),
                     concat(ncclGetErrorString(result), ", ", ncclGetLastError(nullptr)),
                     "Check the network interfaces of this host (NCCL_SOCKET_IFNAME chooses "
                     "one), or set communication.backend = mpi"});
    }
}

ncclDataType_t raw_type(DeviceType type) {
    switch (type) {
    case DeviceType::float32:
        return ncclFloat32;
    case DeviceType::float16:
        return ncclFloat16;
    case DeviceType::bfloat16:
        return ncclBfloat16;
    case DeviceType::float64:
        return ncclFloat64;
    case DeviceType::int64:
        return ncclInt64;
    case DeviceType::uint8:
        return ncclUint8;
    }
    return ncclUint8;
}

void check_slices(DeviceView whole, DeviceSpan slice, int ranks) {
    if (whole.count != slice.count * static_cast<std::size_t>(ranks) || whole.type != slice.type) {
        throw Error(ExitCode::software,
                    {concat("a slice of ", slice.count, " elements for a whole of ", whole.count),
                     concat("each of ", ranks, " ranks has one slice, of the whole's type"),
                     "Please report this"});
    }
}

} // namespace

bool nccl_available() {
    return true;
}

std::string nccl_version() {
    int version = 0;
    check_local(ncclGetVersion(&version), "ncclGetVersion");
    return concat(version / 10000, ".", version / 100 % 100, ".", version % 100);
}

int device_count() {
    int count = 0;
    return gpu::device_count(&count) == gpu::success ? count : 0;
}

bool each_rank_has_own_device(Communicator const& comm, int device) {
    std::array<char, 32> bus{};
    agree(comm, "looking for the GPUs", [&] {
        if (device < 0) {
            return;
        }
        auto const result = gpu::bus_id(bus.data(), static_cast<int>(bus.size()), device);
        if (result != gpu::success) {
            throw Error(ExitCode::unavailable,
                        {concat("GPU ", device, " is not usable"), gpu::error_text(result),
                         "Check the driver, or set run.device = cpu"});
        }
    });
    auto places = all_gather_text(comm, device < 0 ? "" : concat(host_name(), " ", bus.data()));
    std::sort(places.begin(), places.end());
    return !places.front().empty() &&
           std::adjacent_find(places.begin(), places.end()) == places.end();
}

std::vector<std::byte> broadcast_unique_id(Communicator const& comm) {
    ncclUniqueId id{};
    agree(comm, "making NCCL's id", [&] {
        if (comm.is_root()) {
            check_local(ncclGetUniqueId(&id), "ncclGetUniqueId");
        }
    });
    std::vector<std::byte> bytes(sizeof id);
    std::memcpy(bytes.data(), &id, sizeof id);
    comm::broadcast(comm, std::span(bytes));
    return bytes;
}

NcclCommunicator::NcclCommunicator(Communicator const& comm, NcclOptions const& options) {
    agree(comm, "choosing the GPU", [&] { state_ = std::make_unique<State>(comm, options); });
    bool const own = each_rank_has_own_device(comm, options.device);
    agree(comm, "choosing the GPU", [&] {
        if (!own) {
            throw Error(ExitCode::unavailable,
                        {"ranks of one host share a GPU", "NCCL needs one GPU for each rank",
                         "Start at most one rank per GPU, or set communication.backend = mpi"});
        }
    });
    auto const id = broadcast_unique_id(comm);
    // A rank on which NCCL failed speaks before those that waited for it in vain.
    bool joined = false;
    auto const failure = failure_of([&] { joined = state_->join(id); });
    agree_on(comm, "starting NCCL", failure);
    agree(comm, "starting NCCL", [&] {
        if (!joined) {
            throw Error(ExitCode::unavailable,
                        {concat("NCCL did not start within ", options.timeout_seconds, " s"),
                         "the ranks cannot reach each other",
                         "Check the network between the hosts (NCCL_SOCKET_IFNAME chooses the "
                         "interface, NCCL_DEBUG=INFO says more), or set "
                         "communication.backend = mpi"});
        }
    });
}

NcclCommunicator::NcclCommunicator(NcclCommunicator&&) noexcept = default;
NcclCommunicator::~NcclCommunicator() = default;

void NcclCommunicator::all_reduce_sum(DeviceSpan values, DeviceStream compute) {
    std::lock_guard const lock(state_->mutex);
    state_->follow(compute);
    state_->launched(ncclAllReduce(values.data, values.data, values.count, raw_type(values.type),
                                   ncclSum, state_->raw, state_->stream.get()),
                     "ncclAllReduce");
}

void NcclCommunicator::reduce_scatter_sum(DeviceView whole, DeviceSpan slice,
                                          DeviceStream compute) {
    check_slices(whole, slice, state_->ranks);
    std::lock_guard const lock(state_->mutex);
    state_->follow(compute);
    state_->launched(ncclReduceScatter(whole.data, slice.data, slice.count, raw_type(slice.type),
                                       ncclSum, state_->raw, state_->stream.get()),
                     "ncclReduceScatter");
}

void NcclCommunicator::all_gather(DeviceView slice, DeviceSpan whole, DeviceStream compute) {
    check_slices({whole.data, whole.count, whole.type}, {nullptr, slice.count, slice.type},
                 state_->ranks);
    std::lock_guard const lock(state_->mutex);
    state_->follow(compute);
    state_->launched(ncclAllGather(slice.data, whole.data, slice.count, raw_type(slice.type),
                                   state_->raw, state_->stream.get()),
                     "ncclAllGather");
}

void NcclCommunicator::broadcast(DeviceSpan values, int root, DeviceStream compute) {
    std::lock_guard const lock(state_->mutex);
    state_->follow(compute);
    state_->launched(ncclBroadcast(values.data, values.data, values.count, raw_type(values.type),
                                   root, state_->raw, state_->stream.get()),
                     "ncclBroadcast");
}

void NcclCommunicator::exchange(std::span<DeviceExchange const> shards, DeviceStream compute) {
    std::lock_guard const lock(state_->mutex);
    state_->follow(compute);
    // Inside a group nothing is sent yet, and a group that was opened must be closed.
    auto result = ncclGroupStart();
    auto const note = [&](ncclResult_t of_call) {
        bool const good = result == ncclSuccess || result == ncclInProgress;
        result = good && of_call != ncclSuccess ? of_call : result;
    };
    for (auto const& shard : shards) {
        auto const& [peer, send, receive] = shard;
        if (send.count > 0) {
            note(ncclSend(send.data, send.count, raw_type(send.type), peer, state_->raw,
                          state_->stream.get()));
        }
        if (receive.count > 0) {
            note(ncclRecv(receive.data, receive.count, raw_type(receive.type), peer, state_->raw,
                          state_->stream.get()));
        }
    }
    note(ncclGroupEnd());
    state_->launched(result, "an exchange by NCCL");
}

void NcclCommunicator::wait(DeviceStream compute) {
    state_->check_gpu(gpu::record_event(state_->after.get(), state_->stream.get()),
                      "recording an event");
    state_->check_gpu(gpu::stream_wait(static_cast<gpu::Stream>(compute), state_->after.get(), 0),
                      "waiting for an event");
}

void NcclCommunicator::check_async() {
    std::lock_guard const lock(state_->mutex);
    state_->require_usable();
    auto const result = state_->async_result();
    if (result != ncclSuccess && result != ncclInProgress) {
        state_->fail("communication between GPUs failed", state_->reason(result));
    }
}

void NcclCommunicator::synchronize(double timeout_seconds) {
    state_->check_gpu(gpu::record_event(state_->after.get(), state_->stream.get()),
                      "recording an event");
    bool const done = poll_until(
        [&] {
            check_async();
            auto const result = gpu::query_event(state_->after.get());
            if (result != gpu::not_ready) {
                state_->check_gpu(result, "communication between GPUs");
            }
            return result == gpu::success;
        },
        timeout_seconds);
    if (!done) {
        state_->fail("communication between GPUs did not end",
                     concat("another rank did not take part within ", timeout_seconds, " s"));
    }
}

// From 2.19 on NCCL gives memory that it can register.
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 19, 0)

struct NcclMemory::Block {
    explicit Block(NcclCommunicator::State& owner) : state(owner) {}
    Block(Block const&) = delete;
    Block& operator=(Block const&) = delete;
    ~Block() {
        std::lock_guard const lock(state.mutex);
        if (registration != nullptr && state.raw != nullptr) {
            ncclCommDeregister(state.raw, registration);
        }
        if (data != nullptr) {
            ncclMemFree(data);
        }
    }

    NcclCommunicator::State& state;
    void* data = nullptr;
    void* registration = nullptr; ///< null: NCCL saw no use in it
};

NcclMemory NcclCommunicator::allocate(std::size_t bytes) {
    auto block = std::make_unique<NcclMemory::Block>(*state_);
    NcclMemory memory;
    if (ncclMemAlloc(&block->data, bytes) != ncclSuccess) {
        block->data = nullptr;
        return memory; // torch's allocator will do, or say that there is no more
    }
    std::lock_guard const lock(state_->mutex);
    state_->require_usable();
    state_->launched(ncclCommRegister(state_->raw, block->data, bytes, &block->registration),
                     "ncclCommRegister");
    memory.block_ = std::move(block);
    return memory;
}

#else

struct NcclMemory::Block {
    void* data = nullptr;
};

NcclMemory NcclCommunicator::allocate(std::size_t) {
    return {};
}

#endif

NcclMemory::NcclMemory() noexcept = default;
NcclMemory::NcclMemory(NcclMemory&&) noexcept = default;
NcclMemory& NcclMemory::operator=(NcclMemory&&) noexcept = default;
NcclMemory::~NcclMemory() = default;

void* NcclMemory::data() const noexcept {
    return block_ ? block_->data : nullptr;
}

void NcclCommunicator::abort() noexcept {
    std::lock_guard const lock(state_->mutex);
    state_->abort();
}

int NcclCommunicator::device() const noexcept {
    return state_->options.device;
}

} // namespace lockstep::comm
