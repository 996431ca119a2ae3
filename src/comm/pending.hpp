#pragma once

#include "base/awake_clock.hpp"
#include "comm/collectives.hpp"
#include "lockstep/comm/communicator.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace lockstep::comm {

/// Waits longer and longer between polls: first it only yields, then it sleeps. MPI moves messages
/// only while it is called.
class Backoff {
  public:
    /// Throws  Error 76 saying `what` was waited for, when `seconds` have passed in which this
    ///         process was not stopped
    Backoff(double seconds, std::string what, double longest_pause_s = shortest_pause_s);
    void pause();

    /// A longer one would slow messages down: those of TCP move only while MPI is called.
    static constexpr double shortest_pause_s = 50e-6;

  private:
    AwakeClock clock_;
    double seconds_;
    std::string what_;
    double longest_pause_s_;
};

/// Collective operations under way. If an error destroys this object before they are done, they
/// keep their memory until the process ends, so that MPI never writes to memory that has been
/// reused: MPI cannot cancel them.
class Pending {
  public:
    /// `memory` holds all that they read and write.
    explicit Pending(std::shared_ptr<void const> memory);
    Pending(Pending&& other) noexcept;
    Pending& operator=(Pending&&) = delete;
    ~Pending();

    /// Adds up `values` over all ranks, in place.
    ///
    /// Collective  over `comm`
    template <Element T>
    void sum(Communicator const& comm, std::span<T> values);
    /// Sets `value` to the smallest of all ranks' values.
    ///
    /// Collective  over `comm`
    void minimum(Communicator const& comm, double& value);
    /// Sends each rank's shard of `whole` to all ranks: bounds [ranks + 1], less than 2^31
    /// elements.
    ///
    /// Collective  over `comm`
    void gather(Communicator const& comm, float* whole, std::vector<std::int64_t> const& bounds);
    /// Copies rank 0's bytes to all ranks.
    ///
    /// Collective  over `comm`
    void broadcast(Communicator const& comm, std::span<std::byte> bytes);
    /// Collective  over `comm`
    void barrier(Communicator const& comm);

    /// Whether all are done; does not wait.
    [[nodiscard]] bool done();
    /// Throws  Error 76 saying `what` was waited for, when they are not done in time
    void wait(double timeout_seconds,
              std::string const& what = "gradients or parameters from other ranks");

  private:
    struct UnderWay;

    std::unique_ptr<UnderWay> under_way_; ///< null where it was moved from
};

} // namespace lockstep::comm
