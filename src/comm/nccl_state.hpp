#pragma once

#include "base/clock.hpp"
#include "comm/nccl.hpp"

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>

#include "nccl_api.hpp"

namespace lockstep::comm {

struct StreamDeleter {
    using pointer = gpu::Stream;
    void operator()(gpu::Stream stream) const noexcept {
        static_cast<void>(gpu::destroy_stream(stream));
    }
};
struct EventDeleter {
    using pointer = gpu::Event;
    void operator()(gpu::Event event) const noexcept {
        static_cast<void>(gpu::destroy_event(event));
    }
};
using StreamHandle = std::unique_ptr<std::remove_pointer_t<gpu::Stream>, StreamDeleter>;
using EventHandle = std::unique_ptr<std::remove_pointer_t<gpu::Event>, EventDeleter>;

/// Asks `done` at first eagerly, then every 50 microseconds, so that a rank that waits does not
/// take the core from one that computes; false when it never said yes within the limit.
template <class Done>
bool poll_until(Done const& done, double limit_seconds) {
    constexpr double eager_seconds = 1e-4;
    Stopwatch const watch;
    while (!done()) {
        double const passed = watch.seconds();
        if (passed > limit_seconds) {
            return false;
        }
        if (passed < eager_seconds) {
            std::this_thread::yield();
        } else {
            std::this_thread::sleep_for(std::chrono::microseconds(50));
        }
    }
    return true;
}

/// NCCL's handle with the stream and the events that it works with. A failure that NCCL tells of
/// while the host waits for the device, where nobody would ask, is found by a thread that asks now
/// and then, and leaves it to the watchdog: NCCL is not aborted, since the kernels that hang would
/// end, and the host continue with what did not arrive. Whatever uses `raw` holds the mutex.
struct NcclCommunicator::State {
    /// Binds the calling thread to the device and makes the side stream. Local.
    ///
    /// Throws  Error 69 when the device cannot be used
    State(Communicator const& comm, NcclOptions const& options);
    State(State const&) = delete;
    State& operator=(State const&) = delete;
    ~State();

    /// Joins the other ranks under `id`; false when the time limit passed.
    ///
    /// Collective  over the ranks of the communicator
    /// Throws      Error 69 on the rank where NCCL fails
    bool join(std::span<std::byte const> id);

    /// Throws  Error 76 once NCCL was aborted
    void require_usable();

    /// Puts what is on `compute` now before what the side stream gets next.
    void follow(DeviceStream compute);

    /// Makes sure that a call of NCCL was taken, which without blocking may take a while.
    ///
    /// Throws  Error 76
    void launched(ncclResult_t result, std::string_view call);

    /// Waits while `result` is "in progress", asking NCCL; false when the time limit passed.
    bool settles(ncclResult_t& result) const noexcept;

    /// NCCL's word on the operations so far.
    ncclResult_t async_result() const noexcept;

    [[noreturn]] void fail(std::string_view what, std::string const& why);
    void check_gpu(gpu::Result result, std::string_view call);
    std::string reason(ncclResult_t result) const;

    /// Ends together with the others; aborts when they do not come within the time limit.
    void finish() noexcept;
    void abort() noexcept;

    int rank;
    int ranks;
    NcclOptions options;
    bool failed = false;
    StreamHandle stream;
    EventHandle before;               ///< on the compute stream: what an operation has to wait for
    EventHandle after;                ///< on the side stream: what has to wait for the operations
    HeartbeatTable const* heartbeats; ///< of the job, which outlives this; null: none
    std::mutex mutex;
    ncclComm_t raw = nullptr;

  private:
    void look_out(std::stop_token const& stop);

    std::condition_variable_any leaves_;
    std::jthread lookout_;
};

} // namespace lockstep::comm
