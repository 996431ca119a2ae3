#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::comm {

enum class DeviceType { float32, float16, bfloat16, float64, int64, uint8 };

/// A stream of a device's work, as its vendor has it: what c10::Stream::native_handle() gives.
using DeviceStream = void*;

/// Elements in device memory; `data` points to const where they are only read.
template <class Pointer>
struct DeviceElements {
    Pointer data = nullptr;
    std::size_t count = 0; ///< elements, not bytes
    DeviceType type = DeviceType::float32;
};
using DeviceSpan = DeviceElements<void*>;
using DeviceView = DeviceElements<void const*>;

/// What is sent to one rank and received from it; a count of 0 means no message.
struct DeviceMessage {
    int peer = 0;
    DeviceView send;
    DeviceSpan receive;
};

/// A vendor's library that communicates between its devices: NCCL, RCCL, oneCCL. This interface has
/// only the calls; DeviceCommunicator decides what to wait for, for how long, and what a failure
/// means.
class CollectiveLibrary {
  public:
    enum class Status { done, under_way, failed };

    /// One rank among those that joined under an id. Not for two threads at once.
    class Member {
      public:
        /// Device memory that is registered with the library; destroy it before the member.
        /// Move-only by its pointer.
        class Memory {
          public:
            virtual ~Memory() = default;
            virtual void* data() const noexcept = 0;
        };

        virtual ~Member() = default;

        /// Adds up `values` over all ranks, in place, in the library's order, after the work that
        /// is on `stream`.
        virtual Status all_reduce_sum(DeviceSpan values, DeviceStream stream) = 0;

        /// Sends and receives all `messages` at once, after the work that is on `stream`.
        virtual Status exchange(std::span<DeviceMessage const> messages, DeviceStream stream) = 0;

        /// Allocates bytes on the device, not zeroed; null: the library offers none.
        ///
        /// Collective  over the members where `symmetric`, which asks for memory that every device
        ///             of the host can access
        virtual std::unique_ptr<Memory> allocate(std::size_t bytes, bool symmetric) = 0;

        /// The status of the start and of all operations so far, as far as the library reports it.
        /// Never waits.
        virtual Status status() const noexcept = 0;

        /// Why it failed, in the library's words.
        virtual std::string failure() const = 0;

        /// Starts the collective shutdown; the last call, unless it fails.
        virtual Status finalize() noexcept = 0;

        /// Ends at once, whatever the other ranks do.
        virtual void abort() noexcept = 0;
    };

    virtual ~CollectiveLibrary() = default;

    /// As messages name it: "NCCL".
    virtual std::string_view name() const = 0;

    /// The version of the library that is loaded: "2.29.7".
    ///
    /// Throws  Error 69
    virtual std::string version() const = 0;

    /// What to look at when ranks do not find each other.
    virtual std::string_view advice() const = 0;

    /// Whether it serves devices of this kind, as LibTorch names it.
    virtual bool serves(std::string_view kind) const = 0;

    /// The key to a new communicator, made by one rank and sent to all. Needs no device.
    ///
    /// Throws  Error 69
    virtual std::vector<std::byte> make_id() const = 0;

    /// Identifies a device within its host: the same text for the same device in every process.
    ///
    /// Throws  Error 69 when there is no such device
    virtual std::string address(int device) const = 0;

    /// Makes `device` the calling thread's and starts joining the others, whose progress `status`
    /// reports; it may have failed at once.
    virtual std::unique_ptr<Member> join(std::span<std::byte const> id, int rank, int ranks,
                                         int device) const = 0;
};

/// The libraries that this program was built with.
std::vector<CollectiveLibrary const*> collective_libraries();

/// The library for devices of this kind; null: none.
CollectiveLibrary const* collective_library(std::string_view kind);

/// Names and versions: "NCCL 2.29.7"; "no NCCL" where there are none.
///
/// Throws  Error 69
std::string collective_libraries_text();

} // namespace lockstep::comm
