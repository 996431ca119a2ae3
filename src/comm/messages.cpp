#include "lockstep/comm/messages.hpp"

#include <algorithm>

namespace lockstep::comm {

namespace {

constexpr std::size_t call_bytes = std::size_t{1} << 30; // MPI counts in int
constexpr int tag = 1;

} // namespace

void send(Communicator const& comm, std::span<std::byte const> bytes, int to) {
    while (!bytes.empty()) {
        auto const part = bytes.first(std::min(bytes.size(), call_bytes));
        check(MPI_Send(part.data(), static_cast<int>(part.size()), MPI_BYTE, to, tag, comm.raw()),
              "MPI_Send");
        bytes = bytes.subspan(part.size());
    }
}

void receive(Communicator const& comm, std::span<std::byte> into, int from) {
    while (!into.empty()) {
        auto const part = into.first(std::min(into.size(), call_bytes));
        check(MPI_Recv(part.data(), static_cast<int>(part.size()), MPI_BYTE, from, tag, comm.raw(),
                       MPI_STATUS_IGNORE),
              "MPI_Recv");
        into = into.subspan(part.size());
    }
}

} // namespace lockstep::comm
