#include "comm/device_communicator.hpp"

#include "base/awake_clock.hpp"
#include "base/text.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "comm/heartbeats.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>

namespace lockstep::comm {

namespace {

using Status = CollectiveLibrary::Status;

/// Asks `done` at first eagerly, then every 50 microseconds, so that a rank that waits does not
/// take the core from one that computes; false when it never said yes within the limit.
template <class Done>
bool poll_until(Done const& done, double limit_seconds) {
    constexpr double eager_seconds = 1e-4;
    AwakeClock clock;
    while (!done()) {
        double const passed = clock.seconds();
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

} // namespace

/// A failure that the library tells of while the host waits for the device, where nobody would ask,
/// is found by a thread that asks now and then, and leaves it to the watchdog: the library is not
/// aborted, since the kernels that hang would end, and the host continue with what did not arrive.
/// Whatever uses `member` holds the mutex.
struct DeviceCommunicator::State {
    State(Communicator const& comm, CollectiveLibrary const& vendors_library,
          DeviceCommunicatorOptions const& chosen)
        : library(vendors_library), rank(comm.rank()), ranks(comm.size()), options(chosen),
          heartbeats(comm.heartbeats()) {}
    State(State const&) = delete;
    State& operator=(State const&) = delete;
    ~State() {
        lookout_ = {};
        abort_if_failed();
        finish();
    }

    /// Joins the other ranks under `id`; false when the time limit passed.
    ///
    /// Collective  over the ranks of the communicator
    /// Throws      Error 69 on the rank where the library fails
    bool join(std::span<std::byte const> id) {
        member = library.join(id, rank, ranks, options.device);
        auto const status = settled(member->status());
        if (status == Status::done) {
            if (heartbeats != nullptr) {
                lookout_ = std::jthread([this](std::stop_token const& stop) { look_out(stop); });
            }
            return true;
        }
        auto const why = status == Status::failed ? member->failure() : std::string();
        failed = true;
        abort();
        if (status == Status::failed) {
            throw Error(ExitCode::unavailable,
                        {concat(library.name(), " cannot start on GPU ", options.device), why,
                         concat("Start one rank per GPU, or set communication.backend = mpi; ",
                                library.advice())});
        }
        return false;
    }

    void require_usable() {
        if (member == nullptr || aborted) {
            fail(concat(library.name(), " cannot communicate"), "it was aborted");
        }
    }

    /// Makes sure that a call was taken, which without blocking may take a while.
    ///
    /// Throws  Error 76
    void launched(Status status, std::string_view call) {
        auto const end = settled(status);
        if (end == Status::under_way) {
            fail(concat(call, " did not start"),
                 concat("another rank did not respond within ", options.timeout_seconds, " s"));
        }
        if (end == Status::failed) {
            fail(concat(call, " failed"), member->failure());
        }
    }

    /// What becomes of a call that is under way: still that when the time limit passed.
    Status settled(Status status) const noexcept {
        poll_until(
            [&] {
                status = status == Status::under_way ? member->status() : status;
                return status != Status::under_way;
            },
            options.timeout_seconds);
        return status;
    }

    [[noreturn]] void fail(std::string_view what, std::string const& why) {
        failed = true;
        throw Error(ExitCode::rank_lost,
                    {concat(what, " (rank ", rank, ", GPU ", options.device, ")"), why,
                     "Look for the first failure of any rank, then start the run again. The run "
                     "resumes from the last checkpoint"});
    }

    /// Ends together with the others; aborts when they do not come within the time limit.
    void finish() noexcept {
        if (member != nullptr && !aborted && settled(member->finalize()) != Status::done) {
            abort();
        }
    }
    void abort_if_failed() noexcept {
        if (failed) {
            abort();
        }
    }
    void abort() noexcept {
        if (member != nullptr && !aborted) {
            member->abort();
            aborted = true;
        }
    }

    CollectiveLibrary const& library;
    int rank;
    int ranks;
    DeviceCommunicatorOptions options;
    bool failed = false;
    HeartbeatTable const* heartbeats; ///< of the job, which outlives this; null: none
    std::mutex mutex;
    std::unique_ptr<CollectiveLibrary::Member> member; ///< null: not joined
    bool aborted = false;                              ///< the member is kept for its memory

  private:
    void look_out(std::stop_token const& stop) {
        constexpr std::chrono::milliseconds period(500);
        std::unique_lock lock(mutex);
        while (!leaves_.wait_for(lock, stop, period, [&] { return stop.stop_requested(); })) {
            if (!aborted && member->status() == Status::failed) {
                auto& own = heartbeats->own();
                own.failure.set(member->failure());
                own.device_failed.store(1, std::memory_order_release);
                return;
            }
        }
    }

    std::condition_variable_any leaves_;
    std::jthread lookout_;
};

bool each_rank_has_own_device(Communicator const& comm, CollectiveLibrary const& library,
                              int device) {
    std::string place;
    agree(comm, "looking for the GPUs", [&] {
        if (device >= 0) {
            place = concat(host_name(), " ", library.address(device));
        }
    });
    auto places = all_gather_text(comm, place);
    std::sort(places.begin(), places.end());
    return !places.front().empty() &&
           std::adjacent_find(places.begin(), places.end()) == places.end();
}

std::vector<std::byte> broadcast_unique_id(Communicator const& comm,
                                           CollectiveLibrary const& library) {
    std::vector<std::byte> id;
    agree(comm, concat("making the id of ", library.name()), [&] {
        if (comm.is_root()) {
            id = library.make_id();
        }
    });
    auto size = id.size();
    broadcast(comm, std::span(&size, 1));
    id.resize(size);
    broadcast(comm, std::span(id));
    return id;
}

DeviceCommunicator::DeviceCommunicator(Communicator const& comm, CollectiveLibrary const& library,
                                       DeviceCommunicatorOptions const& options)
    : state_(std::make_unique<State>(comm, library, options)) {
    bool const own = each_rank_has_own_device(comm, library, options.device);
    agree(comm, "choosing the GPU", [&] {
        if (!own) {
            throw Error(ExitCode::unavailable,
                        {"ranks of one host share a GPU",
                         concat(library.name(), " needs one GPU for each rank"),
                         "Start at most one rank per GPU, or set communication.backend = mpi"});
        }
    });
    auto const id = broadcast_unique_id(comm, library);
    auto const starting = concat("starting ", library.name());
    // A rank on which the library failed speaks before those that waited for it in vain.
    bool joined = false;
    auto const failure = failure_of([&] { joined = state_->join(id); });
    agree_on(comm, starting, failure);
    agree(comm, starting, [&] {
        if (!joined) {
            throw Error(
                ExitCode::unavailable,
                {concat(library.name(), " did not start within ", options.timeout_seconds, " s"),
                 "the ranks cannot reach each other",
                 concat("Check the network between the hosts (", library.advice(),
                        "), or set communication.backend = mpi")});
        }
    });
}

DeviceCommunicator::DeviceCommunicator(DeviceCommunicator&&) noexcept = default;
DeviceCommunicator::~DeviceCommunicator() = default;

void DeviceCommunicator::all_reduce_sum(DeviceSpan values, DeviceStream stream) {
    std::lock_guard const lock(state_->mutex);
    state_->require_usable();
    state_->launched(state_->member->all_reduce_sum(values, stream),
                     concat("an all-reduce by ", state_->library.name()));
}

void DeviceCommunicator::exchange(std::span<DeviceMessage const> messages, DeviceStream stream) {
    std::lock_guard const lock(state_->mutex);
    state_->require_usable();
    state_->launched(state_->member->exchange(messages, stream),
                     concat("an exchange by ", state_->library.name()));
}

void DeviceCommunicator::check_async() {
    std::lock_guard const lock(state_->mutex);
    state_->require_usable();
    if (state_->member->status() == Status::failed) {
        state_->fail("communication between GPUs failed", state_->member->failure());
    }
}

struct DeviceMemory::Block {
    Block(DeviceCommunicator::State& owner,
          std::unique_ptr<CollectiveLibrary::Member::Memory> libraries)
        : state(owner), memory(std::move(libraries)) {}
    Block(Block const&) = delete;
    Block& operator=(Block const&) = delete;
    ~Block() {
        std::lock_guard const lock(state.mutex);
        // Memory is not given back while a kernel hangs that uses it.
        state.abort_if_failed();
        memory.reset();
    }

    DeviceCommunicator::State& state;
    std::unique_ptr<CollectiveLibrary::Member::Memory> memory;
};

DeviceMemory DeviceCommunicator::allocate(std::size_t bytes, bool symmetric) {
    std::lock_guard const lock(state_->mutex);
    state_->require_usable();
    DeviceMemory result;
    auto memory = state_->member->allocate(bytes, symmetric);
    if (memory) {
        state_->launched(state_->member->status(),
                         concat("registering memory with ", state_->library.name()));
        result.block_ = std::make_unique<DeviceMemory::Block>(*state_, std::move(memory));
    }
    return result;
}

DeviceMemory::DeviceMemory() noexcept = default;
DeviceMemory::DeviceMemory(DeviceMemory&&) noexcept = default;
DeviceMemory& DeviceMemory::operator=(DeviceMemory&&) noexcept = default;
DeviceMemory::~DeviceMemory() = default;

void* DeviceMemory::data() const noexcept {
    return block_ ? block_->memory->data() : nullptr;
}

void DeviceCommunicator::abort() noexcept {
    std::lock_guard const lock(state_->mutex);
    state_->abort();
}

} // namespace lockstep::comm
