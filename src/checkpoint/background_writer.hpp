#pragma once

#include "checkpoint/store.hpp"
#include "lockstep/base/error.hpp"

#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <thread>

namespace lockstep::checkpoint {

/// What became of a checkpoint written in the background.
struct Outcome {
    std::int64_t step = 0;
    double stall_s = 0;                   ///< for which the caller of `start` stood still
    std::optional<Written> written{};     ///< none: it failed
    std::optional<AgreedError> failure{}; ///< the same on all ranks
};

/// Writes checkpoints on a thread of its own, by collective calls on a communicator of its own,
/// while training continues; one at a time. It writes from a copy in memory reserved for that
/// purpose.
///
/// Ranks see the end at different times: decisions that they make together have to come after
/// `wait`. HDF5 must not be called elsewhere in this process while a write is in flight.
class BackgroundWriter {
  public:
    /// Collective  over `world`
    /// Throws      AgreedError 69 where MPI does not provide MPI_THREAD_MULTIPLE
    explicit BackgroundWriter(comm::Communicator const& world);
    BackgroundWriter(BackgroundWriter const&) = delete;
    BackgroundWriter& operator=(BackgroundWriter const&) = delete;
    /// Waits for a write that is still in flight, as the other ranks do, unless it was abandoned.
    ~BackgroundWriter() = default;

    /// For a rank that an error of its own ends: the other ranks, if any, may never join its write
    /// in flight, which then would never return. It is left to its thread; the end of the session
    /// aborts the job. Not collective.
    void abandon() noexcept;

    /// Allocates the memory for a copy of this rank's parts, so that `start` need not.
    void reserve(Snapshot const& snapshot);

    /// Copies this rank's parts and begins to write them; returns once they are copied.
    ///
    /// Collective  over `world`, none in flight; same store, step and attempt on all ranks
    void start(Snapshot const& snapshot, Store const& store, std::int64_t step,
               std::string const& attempt);

    /// What became of the write in flight, returned once; nothing while it continues on this rank,
    /// or when there is none.
    [[nodiscard]] std::optional<Outcome> poll();

    /// The same, after waiting for its end.
    [[nodiscard]] std::optional<Outcome> wait();

  private:
    struct Work;

    std::shared_ptr<Work> work_; ///< the thread's too: it may outlive this object
    std::future<Outcome> outcome_;
    std::jthread thread_;
};

} // namespace lockstep::checkpoint
