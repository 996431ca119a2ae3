#include "nccl_state.hpp"

#include "base/text.hpp"
#include "comm/heartbeats.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <cstring>
#include <exception>

namespace lockstep::comm {

namespace {

void check_start(gpu::Result result, std::string_view call, int device) {
    if (result == gpu::success) {
        return;
    }
    throw Error(result == gpu::out_of_memory ? ExitCode::memory : ExitCode::unavailable,
                {concat("GPU ", device, " is not usable: ", call, " failed"),
                 gpu::error_text(result),
                 "Check the driver and the number of ranks per host, or set run.device = cpu"});
}

} // namespace

NcclCommunicator::State::State(Communicator const& comm, NcclOptions const& chosen)
    : rank(comm.rank()), ranks(comm.size()), options(chosen), heartbeats(comm.heartbeats()) {
    int const device = options.device;
    check_start(gpu::set_device(device), "choosing it", device);
    int least = 0;
    int greatest = 0;
    check_start(gpu::priority_range(&least, &greatest), "asking for priorities", device);
    // Other ranks wait for what this stream sends: it goes before the computation.
    gpu::Stream made = nullptr;
    check_start(gpu::create_stream(&made, gpu::stream_non_blocking, greatest), "making a stream",
                device);
    stream.reset(made);
    for (auto* const event : {&before, &after}) {
        gpu::Event handle = nullptr;
        check_start(gpu::create_event(&handle, gpu::event_without_timing), "making an event",
                    device);
        event->reset(handle);
    }
}

NcclCommunicator::State::~State() {
    lookout_ = {};
    // While an error unwinds this rank the others may never come to the common end.
    if (failed || std::uncaught_exceptions() > 0) {
        abort();
    } else {
        finish();
    }
}

bool NcclCommunicator::State::join(std::span<std::byte const> id) {
    ncclUniqueId unique{};
    std::memcpy(&unique, id.data(), std::min(sizeof unique, id.size()));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    auto result = ncclCommInitRankConfig(&raw, ranks, unique, rank, &config);
    bool const settled = settles(result);
    if (settled && result == ncclSuccess) {
        if (heartbeats != nullptr) {
            lookout_ = std::jthread([this](std::stop_token const& stop) { look_out(stop); });
        }
        return true;
    }
    auto const why = settled ? reason(result) : std::string();
    failed = true;
    abort();
    if (settled) {
        throw Error(ExitCode::unavailable,
                    {concat("NCCL cannot start on GPU ", options.device), why,
                     "Start one rank per GPU, see NCCL_DEBUG=WARN for more, or set "
                     "communication.backend = mpi"});
    }
    return false;
}

void NcclCommunicator::State::look_out(std::stop_token const& stop) {
    constexpr std::chrono::milliseconds period(500);
    std::unique_lock lock(mutex);
    while (!leaves_.wait_for(lock, stop, period, [&] { return stop.stop_requested(); })) {
        auto const result = raw == nullptr ? ncclSuccess : async_result();
        if (result != ncclSuccess && result != ncclInProgress) {
            auto& own = heartbeats->own();
            own.failure.set(reason(result));
            own.device_failed.store(1, std::memory_order_release);
            return;
        }
    }
}

void NcclCommunicator::State::require_usable() {
    if (raw == nullptr) {
        fail("NCCL cannot communicate", "it was aborted");
    }
}

void NcclCommunicator::State::follow(DeviceStream compute) {
    require_usable();
    check_gpu(gpu::record_event(before.get(), static_cast<gpu::Stream>(compute)),
              "recording an event");
    check_gpu(gpu::stream_wait(stream.get(), before.get(), 0), "waiting for an event");
}

void NcclCommunicator::State::launched(ncclResult_t result, std::string_view call) {
    bool const settled = settles(result);
    if (!settled) {
        fail(concat(call, " did not start"),
             concat("another rank did not respond within ", options.timeout_seconds, " s"));
    }
    if (result != ncclSuccess) {
        fail(concat(call, " failed"), reason(result));
    }
}

bool NcclCommunicator::State::settles(ncclResult_t& result) const noexcept {
    return poll_until(
        [&] {
            result = result == ncclInProgress ? async_result() : result;
            return result != ncclInProgress;
        },
        options.timeout_seconds);
}

ncclResult_t NcclCommunicator::State::async_result() const noexcept {
    auto result = ncclSuccess;
    auto const asked = ncclCommGetAsyncError(raw, &result);
    return asked == ncclSuccess ? result : asked;
}

void NcclCommunicator::State::fail(std::string_view what, std::string const& why) {
    failed = true;
    throw Error(ExitCode::rank_lost,
                {concat(what, " (rank ", rank, ", GPU ", options.device, ")"), why,
                 "Look for the first failure of any rank, then start the run again: it resumes "
                 "from the last checkpoint"});
}

void NcclCommunicator::State::check_gpu(gpu::Result result, std::string_view call) {
    if (result != gpu::success) {
        fail(concat(call, " failed"), gpu::error_text(result));
    }
}

std::string NcclCommunicator::State::reason(ncclResult_t result) const {
    // NCCL keeps its last text for the whole process, so without a handle it may still help.
    char const* const detail = ncclGetLastError(raw);
    bool const has_detail = detail != nullptr && *detail != '\0';
    return concat(ncclGetErrorString(result), has_detail ? ", " : "", has_detail ? detail : "");
}

void NcclCommunicator::State::finish() noexcept {
    if (raw == nullptr) {
        return;
    }
    auto result = ncclCommFinalize(raw);
    bool const settled = settles(result);
    if (settled && result == ncclSuccess) {
        ncclCommDestroy(raw);
        raw = nullptr;
    } else {
        abort();
    }
}

void NcclCommunicator::State::abort() noexcept {
    if (raw != nullptr) {
        ncclCommAbort(raw);
        raw = nullptr;
    }
}

} // namespace lockstep::comm
