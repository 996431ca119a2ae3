#pragma once

#include "lockstep/base/clock.hpp"
#include "lockstep/comm/collectives.hpp"
#include "lockstep/comm/communicator.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace lockstep::comm {

/// Waits longer and longer between looks: first it only gives way, then it sleeps. MPI moves
/// messages only while it is called.
class Backoff {
  public:
    /// Throws  Error 76 saying `what` was waited for, when `seconds` have passed
    Backoff(double seconds, std::string what);
    void pause();

  private:
    Stopwatch watch_;
    double seconds_;
    std::string what_;
};

/// Messages under way. Their memory must stay until they are done.
class Pending {
  public:
    void send(Communicator const& comm, int to, float const* values, std::int64_t count);
    void send(Communicator const& comm, int to, std::uint16_t const* values, std::int64_t count);
    void receive(Communicator const& comm, int from, float* values, std::int64_t count);
    void receive(Communicator const& comm, int from, std::uint16_t* values, std::int64_t count);
    /// Adds up `values` over all ranks, in place.
    void sum(Communicator const& comm, float* values, std::int64_t count);
    /// Makes each rank's piece of `whole` known: bounds [ranks + 1], less than 2^31 elements.
    void gather(Communicator const& comm, float* whole, std::vector<int> const& bounds);
    /// Whether all are done; does not wait.
    bool done();
    /// Throws  Error 76 when they are not done in time
    void wait(double timeout_seconds);

  private:
    std::vector<MPI_Request> requests_;
    std::vector<std::unique_ptr<std::vector<int>>> counts_; ///< which MPI reads while it gathers
};

} // namespace lockstep::comm
