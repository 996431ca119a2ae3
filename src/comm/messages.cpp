#include "comm/messages.hpp"

#include "comm/native.hpp"
#include "comm/wait_scope.hpp"

#include "counts.hpp"

namespace lockstep::comm {

namespace {

constexpr int tag = 1;

} // namespace

void send(Communicator const& comm, std::span<std::byte const> bytes, int to) {
    WaitScope const wait(comm, Wait::message);
    in_parts(bytes.size(), call_bytes, [&](std::size_t first, int length) {
        check(MPI_Send(bytes.data() + first, length, MPI_BYTE, to, tag, raw(comm)), "MPI_Send");
    });
}

void receive(Communicator const& comm, std::span<std::byte> into, int from) {
    WaitScope const wait(comm, Wait::message);
    in_parts(into.size(), call_bytes, [&](std::size_t first, int length) {
        check(MPI_Recv(into.data() + first, length, MPI_BYTE, from, tag, raw(comm),
                       MPI_STATUS_IGNORE),
              "MPI_Recv");
    });
}

} // namespace lockstep::comm
