#pragma once

#include "comm/collective_library.hpp"
#include "lockstep/comm/communicator.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace lockstep::comm {

/// Whether no two ranks of one host share a device, which NCCL refuses. -1 stands for no device.
///
/// Collective  over `comm`
/// Throws      AgreedError 69 on every rank when a device does not exist
bool each_rank_has_own_device(Communicator const& comm, CollectiveLibrary const& library,
                              int device);

/// The library's key to a new communicator: made by rank 0, sent to all by MPI. Needs no device.
///
/// Collective  over `comm`
/// Throws      AgreedError 69 on every rank when rank 0 cannot make it
std::vector<std::byte> broadcast_unique_id(Communicator const& comm,
                                           CollectiveLibrary const& library);

struct DeviceCommunicatorOptions {
    int device = 0;               ///< index among the devices of this process
    double timeout_seconds = 300; ///< for the start, for each launch, and for the end
};

/// Device memory that is registered with the library, which sends from it and receives into it
/// without copies of its own ("user buffer registration" in NCCL's documentation). Move-only;
/// destroy it before the communicator that made it.
class DeviceMemory {
  public:
    DeviceMemory() noexcept;
    DeviceMemory(DeviceMemory&&) noexcept;
    DeviceMemory& operator=(DeviceMemory&&) noexcept;
    ~DeviceMemory();

    void* data() const noexcept; ///< null: the library offers none here

  private:
    friend class DeviceCommunicator;
    struct Block;
    std::unique_ptr<Block> block_;
};

/// The devices of all ranks, one each, joined by their vendor's library. Every operation is
/// enqueued on the stream that is passed, after the work that is on it; the host does not wait for
/// it. Memory must live until that stream has passed the operation. Move-only, and not for two
/// threads at once.
///
/// Collective  every operation is over the ranks of the communicator it was made from, in the same
///             order on all of them; destruction too, unless it aborts
/// Throws      every operation: Error 76 when the library reports a failure of this or an earlier
///             operation, or when one does not start within the time limit
class DeviceCommunicator {
  public:
    /// Makes `options.device` the calling thread's device and starts the library without blocking,
    /// where it can.
    ///
    /// Collective  over `comm`
    /// Throws      AgreedError 69 on every rank when a device is missing or shared, or when the
    ///             ranks do not find each other within the time limit
    DeviceCommunicator(Communicator const& comm, CollectiveLibrary const& library,
                       DeviceCommunicatorOptions const& options);

    DeviceCommunicator(DeviceCommunicator&&) noexcept;
    DeviceCommunicator& operator=(DeviceCommunicator&&) = delete;

    /// Waits for the operations and ends the library together with the other ranks, for at most the
    /// time limit; aborts at once after an operation failed. A rank that an error of its own ends
    /// calls `abort` before.
    ~DeviceCommunicator();

    /// Adds up `values` over all ranks, in place, in the library's order.
    ///
    /// Collective  same count and type on all ranks
    void all_reduce_sum(DeviceSpan values, DeviceStream stream);

    /// Sends and receives all `messages` at once. A rank may send to itself.
    ///
    /// Collective  what one rank sends to another is what that one receives from it; a rank that
    ///             has no message need not call
    void exchange(std::span<DeviceMessage const> messages, DeviceStream stream);

    /// Asks the library for a failure of any operation so far. Local, never waits.
    ///
    /// Throws  Error 76
    void check_async();

    /// Allocates registered memory on this device, not zeroed. Empty where this library or device
    /// offers none: use any other device memory then. With `symmetric`, memory that all ranks
    /// access during sums in the library's order.
    ///
    /// Collective  same bytes on all ranks
    /// Throws      Error 76 when the library has failed
    DeviceMemory allocate(std::size_t bytes, bool symmetric);

    /// Ends the library at once, whatever the other ranks do; every later operation throws. Local.
    void abort() noexcept;

  private:
    friend class DeviceMemory; // which is destroyed while nobody else calls
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace lockstep::comm
