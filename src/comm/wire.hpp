#pragma once

#include "lockstep/comm/communicator.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace lockstep::comm {

/// Messages under way, which are awaited together.
class Flight {
  public:
    virtual ~Flight() = default;

    /// Not collective: the other rank has to call the counterpart, with the same number of bytes.
    /// From one rank to another, messages with the same tag arrive in the order in which they were
    /// sent.
    virtual void send(int to, int tag, std::span<std::byte const> bytes) = 0;
    virtual void receive(int from, int tag, std::span<std::byte> bytes) = 0;
    /// Copies rank 0's bytes to all ranks.
    ///
    /// Collective  over all ranks, in the same order as other collective calls; does not wait
    virtual void broadcast(std::span<std::byte> bytes) = 0;
    /// Sets `value` to the smallest of all ranks' values.
    ///
    /// Collective  as broadcast
    virtual void minimum(double& value) = 0;
    /// Whether all are done; does not wait. Messages are made progress with by Wire::progress.
    [[nodiscard]] virtual bool done() = 0;
    /// Throws  Error 76 when they are not done in time
    virtual void wait(double timeout_seconds) = 0;
};

/// The transport of bytes between the ranks of different hosts, for one exchange only.
class Wire {
  public:
    virtual ~Wire() = default;

    /// `memory` holds all that the flight's messages read and write.
    virtual std::unique_ptr<Flight> flight(std::shared_ptr<void const> memory) = 0;
    /// Makes progress with messages, without waiting; waiting for a flight does so, too.
    virtual void progress() = 0;
    /// The longest sleep between two polls of a thread that waits for messages, in seconds.
    virtual double longest_pause_s() const = 0;
    /// Sums over all ranks, in place, in any order.
    ///
    /// Collective  over all ranks
    /// Throws      Error 76 when a rank does not arrive in time
    virtual void sum(std::span<double> values, double timeout_seconds) = 0;
};

/// MPI's messages, on a communicator that nobody else uses.
std::unique_ptr<Wire> mpi_wire(Communicator own);

/// For threads that act as ranks: element r is for rank r.
std::vector<std::unique_ptr<Wire>> thread_wires(int ranks);

} // namespace lockstep::comm
