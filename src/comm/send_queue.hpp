#pragma once

#include "comm/native.hpp"
#include "lockstep/comm/communicator.hpp"

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <vector>

namespace lockstep::comm {

/// Bytes of the slices that a message of so many bytes is sent in, the last one excepted; both
/// sides cut it alike. Open MPI asks the receiver before it sends more than 64 KiB over TCP, and
/// what it asks and answers waits behind what is under way already: short messages need no
/// question, and long ones do not keep the answers of the other direction waiting until they are
/// through.
std::size_t slice_bytes(std::size_t message_bytes);

/// Messages that leave in slices, a few of which are under way to each rank at a time. To one rank
/// they leave in the order in which they came.
class SendQueue {
  public:
    /// `comm` must outlive it. Not collective.
    explicit SendQueue(Communicator const& comm) : comm_(comm) {}
    SendQueue(SendQueue const&) = delete;
    SendQueue& operator=(SendQueue const&) = delete;
    /// What MPI cannot take back keeps its memory for as long as the process is alive.
    ~SendQueue();

    /// `memory` holds the bytes; `left` counts the slices that have not left yet.
    ///
    /// Not collective: the other rank has to receive the slices
    void add(int to, int tag, std::span<std::byte const> bytes, std::shared_ptr<void const> memory,
             std::shared_ptr<std::size_t> const& left);
    /// Looks what has left, and sends what may; does not wait.
    void progress();

  private:
    struct Slice {
        int tag = 0;
        std::span<std::byte const> bytes;
        std::shared_ptr<void const> memory;
        std::shared_ptr<std::size_t> left;
        MPI_Request request = MPI_REQUEST_NULL;
    };
    struct Peer {
        std::deque<Slice> waiting;
        std::vector<Slice> under_way;
        std::size_t bytes_under_way = 0;
    };

    void progress(int to, Peer& peer);

    Communicator const& comm_;
    std::map<int, Peer> peers_; ///< with something to send
};

} // namespace lockstep::comm
