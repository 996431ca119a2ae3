#include "nccl_kernels.hpp"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <cstring>

#include "nccl_communicator.hpp"
#include "options.hpp"
#include "runtime.hpp"

namespace lockstep::sim {

namespace {

using Kind = NcclCall::Kind;

/// A call's arrays as its kernel sees them.
struct Launched {
    NcclCall call;
    std::byte* from = nullptr;
    std::byte* into = nullptr;
};

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

std::byte* view_of(void const* data, std::size_t bytes) {
    return data == nullptr ? nullptr : static_cast<std::byte*>(kernel_view(data, bytes));
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
void all_reduce(Launched const& launched) {
    auto const& [call, from, into] = launched;
    auto const unit = call.count * size_of(call.type);
    MessageHeader const header{unit, static_cast<std::uint32_t>(call.kind), 0};
    Parts parts(static_cast<std::size_t>(call.comm->ranks), std::vector<std::byte>(unit));
    std::vector<Transfer> transfers;
    for (std::size_t other = 0; other < parts.size(); ++other) {
        transfers.push_back({true, static_cast<int>(other), from, header});
        transfers.push_back({false, static_cast<int>(other), parts[other].data(), header});
    }
    if (call.comm->carry_out(transfers)) {
        sum(call.type, parts, into, call.count);
    }
}

void carry_out(ncclComm& comm, std::vector<Launched> const& launched) {
    std::vector<Transfer> messages;
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
            if (each.call.kind == Kind::all_reduce) {
                all_reduce(each);
            }
        }
    }
}

} // namespace

ncclResult_t launch_calls(ncclComm& comm, std::vector<NcclCall> const& calls, std::string& why) {
    if (comm.state != ncclSuccess) {
        why = "the communicator is not usable";
        return ncclInvalidUsage;
    }
    std::vector<Range> ranges;
    std::vector<Launched> launched;
    for (auto const& call : calls) {
        if (call.peer < 0 || call.peer >= comm.ranks) {
            why = "no such rank";
            return ncclInvalidArgument;
        }
        auto const bytes = call.count * size_of(call.type);
        if (call.from != nullptr && call.from != call.into) {
            ranges.push_back({call.from, bytes, false});
        }
        if (call.into != nullptr) {
            ranges.push_back({call.into, bytes, true});
        }
        if (call.kind == Kind::message) {
            comm.peers.insert(call.peer);
            count_peers(comm.peers.size());
        }
        launched.push_back({call, view_of(call.from, bytes), view_of(call.into, bytes)});
    }
    auto& on = *reinterpret_cast<Stream*>(calls.front().stream);
    bool const messages = calls.front().kind == Kind::message;
    char const* const name = messages ? "an exchange" : "an all-reduce";
    if (!has_kernels()) {
        launch(on, name, {}, {});
        return ncclSuccess;
    }
    ++comm.running;
    bool const is_lost = comm.rank == 1 && options_of_environment().lose == comm.launched++;
    try {
        launch(on, name, ranges, [&comm, is_lost, launched = std::move(launched)] {
            if (is_lost) {
                comm.fail(ncclSystemError, "the link is down");
                comm.hang();
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

} // namespace lockstep::sim
