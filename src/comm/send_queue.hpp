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

/// Size of the slices in which a message of that many bytes is sent (the last one may be shorter);
/// both sides cut it in the same way. Open MPI asks the receiver before it sends more than 64 KiB
/// over TCP (rendezvous), and that handshake queues behind what is under way already: short slices
/// need no handshake, and long messages do not delay the handshakes of the other direction until
/// they are done.
std::size_t slice_bytes(std::size_t message_bytes);

/// Messages that leave in slices, a few of which are under way to each rank at a time. Messages to
/// one rank leave in the order in which they were added.
class SendQueue {
  public:
    /// `comm` must outlive it. Not collective.
    explicit SendQueue(Communicator const& comm) : comm_(comm) {}
    SendQueue(SendQueue const&) = delete;
    SendQueue& operator=(SendQueue const&) = delete;
    /// What MPI cannot cancel keeps its memory until the process ends.
    ~SendQueue();

    /// `memory` holds the bytes; `left` counts the slices that have not left yet.
    ///
    /// Not collective: the other rank has to receive the slices
    void add(int to, int tag, std::span<std::byte const> bytes, std::shared_ptr<void const> memory,
             std::shared_ptr<std::size_t> const& left);
    /// Checks what has left, and sends what can be sent; does not wait.
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
    std::map<int, Peer> peers_; ///< those with something to send
};

} // namespace lockstep::comm
