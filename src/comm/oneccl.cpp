// Compiled against the headers of oneCCL 2022.2 and never run: no device of Intel's was at hand.
// Its C interface has no abort and no word of failures that come later; the watchdog ends a rank
// that waits for one that will not come.

#include "comm/oneccl.hpp"

#include "base/environment.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <cstring>
#include <oneapi/ccl.h>

namespace lockstep::comm {

namespace {

using Status = CollectiveLibrary::Status;

void check_local(onecclResult_t result, std::string_view call) {
    if (result != onecclSuccess) {
        throw Error(ExitCode::unavailable,
                    {concat(call, " failed"), onecclGetErrorString(result),
                     "Set CCL_LOG_LEVEL=info to see details, or set communication.backend = mpi"});
    }
}

onecclDataType_t raw_type(DeviceType type) {
    switch (type) {
    case DeviceType::float32:
        return onecclFloat32;
    case DeviceType::float16:
        return onecclFloat16;
    case DeviceType::bfloat16:
        return onecclBfloat16;
    case DeviceType::float64:
        return onecclFloat64;
    case DeviceType::int64:
        return onecclInt64;
    case DeviceType::uint8:
        return onecclUint8;
    }
    return onecclUint8;
}

class OneCclMember : public CollectiveLibrary::Member {
  public:
    OneCclMember(std::span<std::byte const> id, int rank, int ranks) {
        onecclUniqueId unique{};
        std::memcpy(&unique, id.data(), std::min(sizeof unique, id.size()));
        result_ = onecclCommInitRank(&raw_, static_cast<std::size_t>(ranks), unique, rank);
    }
    OneCclMember(OneCclMember const&) = delete;
    OneCclMember& operator=(OneCclMember const&) = delete;
    ~OneCclMember() override {
        if (raw_ != nullptr) {
            onecclCommDestroy(raw_);
        }
    }

    Status all_reduce_sum(DeviceSpan values, DeviceStream stream) override {
        return noted(onecclAllReduce(values.data, values.data, values.count, raw_type(values.type),
                                     onecclSum, raw_, stream));
    }

    Status exchange(std::span<DeviceMessage const> messages, DeviceStream stream) override {
        auto result = onecclGroupStart();
        auto const note = [&](onecclResult_t of_call) {
            result = result == onecclSuccess ? of_call : result;
        };
        for (auto const& [peer, send, receive] : messages) {
            if (send.count > 0) {
                note(onecclSend(send.data, send.count, raw_type(send.type), peer, raw_, stream));
            }
            if (receive.count > 0) {
                note(onecclRecv(receive.data, receive.count, raw_type(receive.type), peer, raw_,
                                stream));
            }
        }
        note(onecclGroupEnd());
        return noted(result);
    }

    std::unique_ptr<Memory> allocate(std::size_t, bool) override { return nullptr; }

    Status status() const noexcept override {
        return raw_ != nullptr && result_ == onecclSuccess      ? Status::done
               : raw_ != nullptr && result_ == onecclInProgress ? Status::under_way
                                                                : Status::failed;
    }

    std::string failure() const override {
        char const* const detail = onecclGetLastError(raw_);
        bool const has_detail = detail != nullptr && *detail != '\0';
        return concat(onecclGetErrorString(result_), has_detail ? ", " : "",
                      has_detail ? detail : "");
    }

    Status finalize() noexcept override {
        return raw_ == nullptr ? Status::done : noted(onecclCommFinalize(raw_));
    }

    /// What hangs in it ends with the process.
    void abort() noexcept override { raw_ = nullptr; }

  private:
    Status noted(onecclResult_t result) noexcept {
        result_ = result;
        return result == onecclSuccess      ? Status::done
               : result == onecclInProgress ? Status::under_way
                                            : Status::failed;
    }

    onecclComm_t raw_ = nullptr;
    onecclResult_t result_;
};

class OneCcl : public CollectiveLibrary {
  public:
    std::string_view name() const override { return "oneCCL"; }
    std::string version() const override {
        int version = 0;
        check_local(onecclGetVersion(&version), "onecclGetVersion");
        return concat(version / 10000, ".", version / 100 % 100, ".", version % 100);
    }
    std::string_view advice() const override { return "CCL_LOG_LEVEL=info prints details"; }
    bool serves(std::string_view kind) const override { return kind == "xpu"; }
    std::vector<std::byte> make_id() const override {
        onecclUniqueId id{};
        check_local(onecclGetUniqueId(&id), "onecclGetUniqueId");
        auto const bytes = std::as_bytes(std::span(&id, 1));
        return {bytes.begin(), bytes.end()};
    }
    /// The C interface does not name devices: a process sees those that its environment lists.
    std::string address(int device) const override {
        return concat(environment_text("ZE_AFFINITY_MASK"), " ", device);
    }
    std::unique_ptr<Member> join(std::span<std::byte const> id, int rank, int ranks,
                                 int device) const override {
        check_local(onecclSetDevice(static_cast<std::uint32_t>(device)), "onecclSetDevice");
        return std::make_unique<OneCclMember>(id, rank, ranks);
    }
};

} // namespace

CollectiveLibrary const* oneccl_library() {
    static OneCcl const library;
    return &library;
}

} // namespace lockstep::comm
