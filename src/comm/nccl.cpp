#include "comm/nccl.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "nccl_api.hpp"

namespace lockstep::comm {

namespace {

using Status = CollectiveLibrary::Status;

void check_local(ncclResult_t result, std::string_view call) {
    if (result != ncclSuccess) {
        throw Error(ExitCode::unavailable,
                    {concat(call, " failed"),
                     concat(ncclGetErrorString(result), ", ", ncclGetLastError(nullptr)),
                     "Check the network interfaces of this host (NCCL_SOCKET_IFNAME chooses "
                     "one), or set communication.backend = mpi"});
    }
}

void check_device(gpu::Result result, int device) {
    if (result != gpu::success) {
        throw Error(ExitCode::unavailable,
                    {concat("GPU ", device, " is not usable"), gpu::error_text(result),
                     "Check the driver, or set run.device = cpu"});
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

Status status_of(ncclResult_t result) {
    return result == ncclSuccess      ? Status::done
           : result == ncclInProgress ? Status::under_way
                                      : Status::failed;
}

class NcclMember : public CollectiveLibrary::Member {
  public:
    NcclMember(std::span<std::byte const> id, int rank, int ranks) {
        ncclUniqueId unique{};
        std::memcpy(&unique, id.data(), std::min(sizeof unique, id.size()));
        ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
        config.blocking = 0;
        result_ = ncclCommInitRankConfig(&raw_, ranks, unique, rank, &config);
    }
    NcclMember(NcclMember const&) = delete;
    NcclMember& operator=(NcclMember const&) = delete;
    ~NcclMember() override {
        if (raw_ != nullptr) {
            ncclCommDestroy(raw_);
        }
    }

    Status all_reduce_sum(DeviceSpan values, DeviceStream stream) override {
        return noted(ncclAllReduce(values.data, values.data, values.count, raw_type(values.type),
                                   ncclSum, raw_, static_cast<gpu::Stream>(stream)));
    }

    Status exchange(std::span<DeviceMessage const> messages, DeviceStream stream) override {
        auto const on = static_cast<gpu::Stream>(stream);
        // Inside a group nothing is sent yet, and a group that was opened must be closed.
        auto result = ncclGroupStart();
        auto const note = [&](ncclResult_t of_call) {
            bool const good = result == ncclSuccess || result == ncclInProgress;
            result = good && of_call != ncclSuccess ? of_call : result;
        };
        for (auto const& [peer, send, receive] : messages) {
            if (send.count > 0) {
                note(ncclSend(send.data, send.count, raw_type(send.type), peer, raw_, on));
            }
            if (receive.count > 0) {
                note(ncclRecv(receive.data, receive.count, raw_type(receive.type), peer, raw_, on));
            }
        }
        note(ncclGroupEnd());
        return noted(result);
    }

    std::unique_ptr<Memory> allocate(std::size_t bytes, bool symmetric) override;

    Status status() const noexcept override {
        return status_of(result_ == ncclSuccess || result_ == ncclInProgress ? asked() : result_);
    }

    std::string failure() const override {
        auto const result = result_ == ncclSuccess || result_ == ncclInProgress ? asked() : result_;
        // NCCL keeps its last text for the whole process, so without a handle it may still help.
        char const* const detail = ncclGetLastError(raw_);
        bool const has_detail = detail != nullptr && *detail != '\0';
        return concat(ncclGetErrorString(result), has_detail ? ", " : "", has_detail ? detail : "");
    }

    Status finalize() noexcept override {
        return raw_ == nullptr ? Status::done : noted(ncclCommFinalize(raw_));
    }

    void abort() noexcept override {
        if (raw_ != nullptr) {
            ncclCommAbort(raw_);
            raw_ = nullptr;
        }
    }

    ncclComm_t raw() const noexcept { return raw_; }

  private:
    Status noted(ncclResult_t result) noexcept {
        result_ = result;
        return status_of(result);
    }
    ncclResult_t asked() const noexcept {
        auto result = ncclSuccess;
        auto const of_call =
            raw_ == nullptr ? ncclInvalidUsage : ncclCommGetAsyncError(raw_, &result);
        return of_call == ncclSuccess ? result : of_call;
    }

    ncclComm_t raw_ = nullptr; ///< null: aborted, or never made
    ncclResult_t result_;      ///< of the last call
};

// From 2.19 on NCCL gives memory that it can register, from 2.27 on a window on all ranks' memory.
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 19, 0)

class NcclMemory : public CollectiveLibrary::Member::Memory {
  public:
    explicit NcclMemory(NcclMember const& owner) : owner_(owner) {}
    NcclMemory(NcclMemory const&) = delete;
    NcclMemory& operator=(NcclMemory const&) = delete;
    ~NcclMemory() override {
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
        if (window != nullptr && owner_.raw() != nullptr) {
            ncclCommWindowDeregister(owner_.raw(), window);
        }
#endif
        if (registration != nullptr && owner_.raw() != nullptr) {
            ncclCommDeregister(owner_.raw(), registration);
        }
        if (memory != nullptr) {
            ncclMemFree(memory);
        }
    }
    void* data() const noexcept override {
        return memory;
    }

    void* memory = nullptr;
    void* registration = nullptr; ///< null: NCCL saw no use in it
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
    ncclWindow_t window = nullptr; ///< null: the devices cannot look at each other's memory
#endif

  private:
    NcclMember const& owner_;
};

std::unique_ptr<CollectiveLibrary::Member::Memory> NcclMember::allocate(std::size_t bytes,
                                                                        bool symmetric) {
    auto block = std::make_unique<NcclMemory>(*this);
    if (ncclMemAlloc(&block->memory, bytes) != ncclSuccess) {
        block->memory = nullptr;
        return nullptr; // torch's allocator will do, or say that there is no more
    }
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
    if (symmetric) {
        noted(ncclCommWindowRegister(raw_, block->memory, bytes, &block->window,
                                     NCCL_WIN_COLL_SYMMETRIC));
        return block;
    }
#else
    static_cast<void>(symmetric);
#endif
    noted(ncclCommRegister(raw_, block->memory, bytes, &block->registration));
    return block;
}

#else

std::unique_ptr<CollectiveLibrary::Member::Memory> NcclMember::allocate(std::size_t, bool) {
    return nullptr;
}

#endif

class Nccl : public CollectiveLibrary {
  public:
    std::string_view name() const override { return gpu::library; }
    std::string version() const override {
        int version = 0;
        check_local(ncclGetVersion(&version), "ncclGetVersion");
        return concat(version / 10000, ".", version / 100 % 100, ".", version % 100);
    }
    std::string_view advice() const override {
        return "NCCL_SOCKET_IFNAME chooses the network interface, and NCCL_DEBUG=INFO prints "
               "details";
    }
    bool serves(std::string_view kind) const override {
#ifdef LOCKSTEP_NCCL_KIND
        return kind == LOCKSTEP_NCCL_KIND;
#else
        // To LibTorch AMD's devices are "cuda" too, where it was built for them.
        return kind == "cuda" || kind == "hip";
#endif
    }
    std::vector<std::byte> make_id() const override {
        ncclUniqueId id{};
        check_local(ncclGetUniqueId(&id), "ncclGetUniqueId");
        auto const bytes = std::as_bytes(std::span(&id, 1));
        return {bytes.begin(), bytes.end()};
    }
    std::string address(int device) const override {
        std::array<char, 32> bus{};
        check_device(gpu::bus_id(bus.data(), static_cast<int>(bus.size()), device), device);
        return bus.data();
    }
    std::unique_ptr<Member> join(std::span<std::byte const> id, int rank, int ranks,
                                 int device) const override {
        check_device(gpu::set_device(device), device);
        return std::make_unique<NcclMember>(id, rank, ranks);
    }
};

} // namespace

CollectiveLibrary const* nccl_library() {
    static Nccl const library;
    return &library;
}

} // namespace lockstep::comm
