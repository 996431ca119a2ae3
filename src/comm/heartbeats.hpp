#pragma once

#include "comm/phase.hpp"
#include "comm/shared_block.hpp"
#include "comm/shared_text.hpp"
#include "comm/wait.hpp"
#include "lockstep/comm/communicator.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>

namespace lockstep::comm {

/// A table in which each rank tells the other ranks of its host what it is doing, so that a rank
/// that is dead or stuck can be named. An update costs a few stores. Only the thread that made the
/// table reports for its rank; what other threads do counts only as progress.
class HeartbeatTable {
  public:
    /// A rank's line, on cache lines of its own. Zeroed at first.
    struct alignas(128) Slot {
        std::atomic<std::int32_t> rank; ///< of the job
        std::atomic<std::int32_t> pid;
        std::atomic<std::uint64_t> started; ///< the process; see ProcessState
        std::atomic<Phase> phase;
        std::atomic<Wait> wait;
        std::atomic<std::int64_t> step; ///< that is being done; 0: none yet
        std::atomic<std::uint64_t>
            collectives;                     ///< collective calls over all ranks of the job, so far
        std::atomic<std::uint64_t> progress; ///< grows while the rank makes progress
        std::atomic<std::uint64_t> beats;    ///< grows while the process runs
        std::atomic<std::int32_t>
            left; ///< 1: the rank has ended well, 2: its launcher ends it, 3: MPI's end is too late
        std::atomic<std::int32_t> leaves;        ///< 1: all ranks leave, as somebody else has asked
        SharedText<32> device;                   ///< "cuda:1", "cuda:0 and 3 more"
        SharedText<64> activity;                 ///< a part of the phase; may be empty
        std::atomic<std::int32_t> device_failed; ///< 1: the rank may wait for it; `failure` is set
        SharedText<200> failure;
    };

    /// Where the ranks' host cannot share memory, every rank has a heartbeat table for itself.
    ///
    /// Collective  over `world`
    explicit HeartbeatTable(Communicator const& world);

    int size() const noexcept { return size_; } ///< ranks of this host
    int local() const noexcept { return local_; }
    int world_size() const noexcept { return world_size_; }
    Slot& slot(int local) const noexcept { return slots_[local]; }
    Slot& own() const noexcept { return slots_[local_]; }
    bool spoken_for_by_this_thread() const noexcept {
        return std::this_thread::get_id() == speaker_;
    }

    void progressed() const noexcept { own().progress.fetch_add(1, std::memory_order_relaxed); }
    void set_step(std::int64_t step) const noexcept {
        own().step.store(step, std::memory_order_relaxed);
        progressed();
    }
    void set_device(std::string_view device) const noexcept { own().device.set(device); }

    /// Where a rank was when an exception began to leave its phases.
    struct FailurePoint {
        Phase phase = Phase::start_up;
        std::int64_t step = 0; ///< 0: none yet
    };
    /// Where this process was when an exception began to leave its phases; where it is now if none
    /// did. Only for the thread that reports for the rank.
    FailurePoint failed_at() const noexcept {
        return failed_at_->value_or(FailurePoint{own().phase.load(), own().step.load()});
    }

    /// Whether a thread other than the one that made the heartbeat table communicates with other
    /// ranks.
    bool others_speak() const noexcept { return others_->load() > 0; }

    /// How a job that has failed ends.
    enum class Ending : int {
        none,
        agreed, ///< all ranks leave on their own
        abort   ///< the job is aborted
    };
    /// Whether this rank is the first of its host to call this: only that rank reports the root
    /// cause.
    [[nodiscard]] bool claim(Ending ending) const noexcept {
        auto none = Ending::none;
        return head_->ending.compare_exchange_strong(none, ending);
    }
    Ending ending() const noexcept { return head_->ending.load(); }

    /// Asks the rank in this slot for the stacks of its threads.
    void ask_for_stacks(int local) const noexcept { head_->stacks_of.store(local + 1); }
    bool stacks_asked() const noexcept { return head_->stacks_of.load() == local_ + 1; }
    void stacks_written() const noexcept { head_->stacks_of.store(0); }
    bool stacks_pending() const noexcept { return head_->stacks_of.load() != 0; }

    /// Notes that this rank has written what its threads did last, or has failed to.
    void flight_written() const noexcept { head_->flights.fetch_add(1); }
    int flights_written() const noexcept { return head_->flights.load(); }

  private:
    friend class PhaseScope;
    friend class SpeakerScope;
    struct alignas(128) Head {
        std::atomic<Ending> ending;
        std::atomic<std::int32_t> stacks_of;
        std::atomic<std::int32_t> flights;
    };

    int size_ = 1;
    int local_ = 0;
    int world_size_ = 1;
    std::thread::id speaker_ = std::this_thread::get_id();
    std::shared_ptr<std::atomic<int>> others_ = std::make_shared<std::atomic<int>>(0);
    std::unique_ptr<std::optional<FailurePoint>> failed_at_ =
        std::make_unique<std::optional<FailurePoint>>();
    std::unique_ptr<SharedBlock> block_;
    Head* head_ = nullptr;
    Slot* slots_ = nullptr;
};

/// The heartbeat table of a communicator if the calling thread reports for its rank; else null.
/// Not collective.
HeartbeatTable const* own_heartbeats(Communicator const& comm);

} // namespace lockstep::comm
