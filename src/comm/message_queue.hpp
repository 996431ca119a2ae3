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

/// The messages of one exchange to and from other ranks. They travel in slices; a few of those to
/// one rank are under way at a time. Messages to one rank leave in the order in which they were
/// added. One call of MPI asks for all of them, because each call looks at every connection and,
/// where ranks share cores, gives the core away.
class MessageQueue {
  public:
    /// Which message a slice belongs to.
    struct Owner {
        std::shared_ptr<void const> memory; ///< holds the bytes
        std::shared_ptr<std::size_t> left;  ///< slices of its messages that are not done yet
    };

    /// `comm` must outlive it. Not collective.
    explicit MessageQueue(Communicator const& comm) : comm_(comm) {}
    MessageQueue(MessageQueue const&) = delete;
    MessageQueue& operator=(MessageQueue const&) = delete;
    /// Cancels receives. What MPI cannot cancel keeps its memory until the process ends.
    ~MessageQueue();

    /// Not collective: the other rank has to receive.
    void send(int to, int tag, std::span<std::byte const> bytes, Owner const& owner);
    /// Not collective: the other rank has to send as many bytes.
    void receive(int from, int tag, std::span<std::byte> bytes, Owner const& owner);
    /// Notes what is done, and sends what can be sent; does not wait.
    void progress();

  private:
    struct Slice {
        int to = 0; ///< the rank; of a receive `nobody`
        int tag = 0;
        std::span<std::byte const> bytes;
        Owner owner;
    };
    struct Peer {
        std::deque<Slice> waiting;
        std::size_t bytes_under_way = 0;
    };

    void settle();
    void start(Peer& peer);
    MPI_Request& under_way(Slice slice);

    Communicator const& comm_;
    std::map<int, Peer> peers_;         ///< with something to send or under way
    std::vector<Slice> under_way_;      ///< in any order
    std::vector<MPI_Request> requests_; ///< of each slice that is under way
    std::vector<int> finished_;         ///< places that MPI_Testsome writes
};

} // namespace lockstep::comm
