#pragma once

#include "lockstep/comm/communicator.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace lockstep::comm {

/// Whether this program was built with NCCL (or RCCL), which speaks between GPUs.
bool nccl_available();

/// The version of the NCCL that is loaded: "2.29.7".
///
/// Throws  Error 69 when built without NCCL
std::string nccl_version();

/// GPUs that NCCL could use in this process; 0 without a driver, or when built without NCCL.
int device_count();

/// Whether no two ranks of one host share a GPU, which NCCL refuses. -1 stands for no device.
///
/// Collective  over `comm`
/// Throws      AgreedError 69 on every rank when a device does not exist
bool each_rank_has_own_device(Communicator const& comm, int device);

/// NCCL's key to a new communicator: made by rank 0, sent to all by MPI. Needs no GPU.
///
/// Collective  over `comm`
/// Throws      AgreedError 69 on every rank when rank 0 cannot make it; Error 69 without NCCL
std::vector<std::byte> broadcast_unique_id(Communicator const& comm);

enum class DeviceType { float32, float16, bfloat16, float64, int64, uint8 };

/// A stream of the GPU's work, a cudaStream_t (or hipStream_t): `at::cuda::CUDAStream::stream()`.
using DeviceStream = void*;

/// Elements in device memory. One that is only read has a `data` that is const.
template <class Pointer>
struct DeviceElements {
    Pointer data = nullptr;
    std::size_t count = 0; ///< elements, not bytes
    DeviceType type = DeviceType::float32;
};
using DeviceSpan = DeviceElements<void*>;
using DeviceView = DeviceElements<void const*>;

/// What goes to one rank and what comes from it; a count of 0 is no message.
struct DeviceExchange {
    int peer = 0;
    DeviceView send;
    DeviceSpan receive;
};

struct NcclOptions {
    int device = 0;               ///< index among the devices of this process
    double timeout_seconds = 300; ///< for the start, for each launch, and for the end
};

/// Device memory that NCCL knows, so that it sends from it and receives into it without copies of
/// its own ("user buffer registration" in NCCL's documentation). Move-only; goes before the
/// communicator that made it.
class NcclMemory {
  public:
    NcclMemory() noexcept;
    NcclMemory(NcclMemory&&) noexcept;
    NcclMemory& operator=(NcclMemory&&) noexcept;
    ~NcclMemory();

    void* data() const noexcept; ///< null: NCCL offers none here

  private:
    friend class NcclCommunicator;
    struct Block;
    std::unique_ptr<Block> block_;
};

/// The GPUs of all ranks, one each, joined by NCCL. Every operation is put on one side stream of
/// this object, behind the work that is on `compute` when it is called; the host does not wait for
/// it. `wait` orders later work of a compute stream behind the operations: until then their memory
/// is neither read nor written nor freed. Move-only, and not for two threads at once.
///
/// Collective  every operation is over the ranks of the communicator it was made from, in the same
///             order on all of them; destruction too, unless it aborts
/// Throws      every operation: Error 76 when NCCL reports a failure of this or an earlier
///             operation, or when one does not start within the time limit
class NcclCommunicator {
  public:
    /// Makes `options.device` the calling thread's device and starts NCCL without blocking.
    ///
    /// Collective  over `comm`
    /// Throws      AgreedError 69 on every rank when a device is missing or shared, or when the
    ///             ranks do not find each other within the time limit; Error 69 without NCCL
    NcclCommunicator(Communicator const& comm, NcclOptions const& options);

    NcclCommunicator(NcclCommunicator&&) noexcept;
    NcclCommunicator& operator=(NcclCommunicator&&) = delete;

    /// Waits for the operations and ends NCCL together with the other ranks, for at most the time
    /// limit; aborts at once while an error unwinds or after an operation failed.
    ~NcclCommunicator();

    /// Adds up `values` over all ranks, in place, in NCCL's order.
    ///
    /// Collective  same count and type on all ranks
    void all_reduce_sum(DeviceSpan values, DeviceStream compute);

    /// Rank r receives the sum over all ranks of their r-th part of `whole`.
    ///
    /// Shape       slice [n], whole [ranks * n], of one type
    /// Collective  same shapes on all ranks
    /// Throws      Error 70 when the shapes do not fit
    void reduce_scatter_sum(DeviceView whole, DeviceSpan slice, DeviceStream compute);

    /// Puts the slices of all ranks together, by rank.
    ///
    /// Shape       slice [n], whole [ranks * n], of one type; slice may be its own part of whole
    /// Collective  same shapes on all ranks
    /// Throws      Error 70 when the shapes do not fit
    void all_gather(DeviceView slice, DeviceSpan whole, DeviceStream compute);

    /// Copies `values` of rank `root` to all ranks.
    ///
    /// Collective  same count, type and root on all ranks
    void broadcast(DeviceSpan values, int root, DeviceStream compute);

    /// Sends and receives all `shards` at once. A rank may send to itself.
    ///
    /// Collective  what one rank sends to another is what that one receives from it; a rank that
    ///             has no shard need not call
    void exchange(std::span<DeviceExchange const> shards, DeviceStream compute);

    /// Puts later work of `compute` behind all operations so far; the host does not wait. Local.
    void wait(DeviceStream compute);

    /// Asks NCCL for a failure of any operation so far. Local, never waits.
    ///
    /// Throws  Error 76
    void check_async();

    /// Holds the host until all operations so far are done, looking out for failures. Local.
    ///
    /// Throws  Error 76 at a failure, or after `timeout_seconds`
    void synchronize(double timeout_seconds);

    /// So many bytes on this GPU, registered; not zeroed. None where this NCCL or this GPU offers
    /// no such memory: any other will do. Local.
    ///
    /// Throws  Error 76 when NCCL has failed
    NcclMemory allocate(std::size_t bytes);

    /// Ends NCCL at once, whatever the other ranks do; every later operation throws. Local.
    void abort() noexcept;

    int device() const noexcept;

  private:
    friend class NcclMemory; // which deregisters
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace lockstep::comm
