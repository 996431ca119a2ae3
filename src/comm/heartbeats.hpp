#pragma once

#include "comm/shared_block.hpp"
#include "lockstep/comm/communicator.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

namespace lockstep::comm {

/// What a rank is at.
enum class Phase : int {
    start_up,
    train, ///< what of a step is none of the next four
    data,  ///< waits for its next batch
    compute,
    exchange,
    update,
    validation,
    test,
    checkpoint,
    end,
    reporting ///< after the last step: records and pictures
};

/// "forward and backward", and so on.
std::string_view name_of(Phase phase);

/// What a rank waits in for the other ranks.
enum class Wait : int {
    nothing,
    barrier,
    all_reduce,
    broadcast,
    all_gather,
    exchange,
    communicator,
    file,
    finalize
};

/// "an all-reduce", and so on.
std::string_view name_of(Wait wait);

/// A short text in shared memory; one rank writes, all may read.
template <std::size_t length>
class SharedText {
  public:
    void set(std::string_view text) noexcept {
        for (std::size_t i = 0; i < length; ++i) {
            characters_[i].store(i < text.size() ? text[i] : '\0', std::memory_order_relaxed);
        }
    }
    std::string text() const {
        std::string text;
        for (auto const& each : characters_) {
            char const character = each.load(std::memory_order_relaxed);
            if (character == '\0') {
                break;
            }
            text.push_back(character);
        }
        return text;
    }

  private:
    std::array<std::atomic<char>, length> characters_;
};

/// Where each rank tells the other ranks of its host what it is at, so that a rank that is dead or
/// stands still can be named. Saying so costs a few stores. Only the thread that made the heartbeat
/// table speaks for its rank; what other threads do counts as progress alone.
class HeartbeatTable {
  public:
    /// A rank's line, on cache lines of its own. Zeroed at first.
    struct alignas(128) Slot {
        std::atomic<std::int32_t> rank; ///< of the job
        std::atomic<std::int32_t> pid;
        std::atomic<std::uint64_t> started; ///< the process; see ProcessState
        std::atomic<Phase> phase;
        std::atomic<Wait> wait;
        std::atomic<std::int64_t> step;         ///< that is being done; 0: none yet
        std::atomic<std::uint64_t> collectives; ///< calls of all ranks of the job, so far
        std::atomic<std::uint64_t> progress;    ///< grows while the rank gets on
        std::atomic<std::uint64_t> beats;       ///< grows while the process runs
        std::atomic<std::int32_t> left;         ///< 1: the rank has ended well
        SharedText<16> device;
        SharedText<64> activity; ///< a part of the phase; may be empty
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
    struct Place {
        Phase phase = Phase::start_up;
        std::int64_t step = 0; ///< 0: none yet
    };
    /// That of this process; what it is at where no phase was left so. For the thread that speaks.
    Place failed_at() const noexcept {
        return failed_at_->value_or(Place{own().phase.load(), own().step.load()});
    }

    /// Whether a thread beside the one that made the heartbeat table speaks with other ranks, too.
    bool others_speak() const noexcept { return others_->load() > 0; }

    /// How a job that has failed ends.
    enum class Ending : int {
        none,
        agreed, ///< all ranks leave by themselves
        abort   ///< by force
    };
    /// Whether this rank is the first of its host to ask: it alone tells what the root cause is.
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

  private:
    friend class PhaseScope;
    friend class SpeakerScope;
    struct alignas(128) Head {
        std::atomic<Ending> ending;
        std::atomic<std::int32_t> stacks_of;
    };

    int size_ = 1;
    int local_ = 0;
    int world_size_ = 1;
    std::thread::id speaker_ = std::this_thread::get_id();
    std::shared_ptr<std::atomic<int>> others_ = std::make_shared<std::atomic<int>>(0);
    std::unique_ptr<std::optional<Place>> failed_at_ = std::make_unique<std::optional<Place>>();
    std::unique_ptr<SharedBlock> block_;
    Head* head_ = nullptr;
    Slot* slots_ = nullptr;
};

/// The rank is in this phase while the object exists, and in the former one afterwards.
/// LOCKSTEP_INJECT may ask for a fault at its beginning.
class PhaseScope {
  public:
    /// Not collective
    PhaseScope(Communicator const& comm, Phase phase);
    PhaseScope(PhaseScope const&) = delete;
    PhaseScope& operator=(PhaseScope const&) = delete;
    ~PhaseScope();

  private:
    void leave(bool failed) noexcept;

    HeartbeatTable const* heartbeats_; ///< null: nobody watches
    Phase former_ = Phase::start_up;
};

/// The rank waits for others while the object exists.
class WaitScope {
  public:
    /// Not collective
    WaitScope(Communicator const& comm, Wait wait);
    WaitScope(WaitScope const&) = delete;
    WaitScope& operator=(WaitScope const&) = delete;
    ~WaitScope();

  private:
    HeartbeatTable const* heartbeats_; ///< null: nobody watches, or the wait is part of another
};

/// A thread of its own speaks with other ranks while the object exists: MPI must not end before.
class SpeakerScope {
  public:
    /// Not collective
    explicit SpeakerScope(Communicator const& comm);
    SpeakerScope(SpeakerScope&&) noexcept = default;
    SpeakerScope& operator=(SpeakerScope&&) = delete;
    ~SpeakerScope();

  private:
    std::shared_ptr<std::atomic<int>> speakers_; ///< null: nobody watches
};

/// What the rank is at within its phase, while the object exists.
class ActivityScope {
  public:
    /// Not collective
    ActivityScope(Communicator const& comm, std::string_view activity);
    ActivityScope(ActivityScope const&) = delete;
    ActivityScope& operator=(ActivityScope const&) = delete;
    ~ActivityScope();

  private:
    HeartbeatTable const* heartbeats_;
};

/// Says that the rank gets on; for long loops. Not collective.
void progressed(Communicator const& comm) noexcept;

/// The step that the rank does, from 1 on; 0 before the first, and for a thread that does not speak
/// for it. Not collective.
std::int64_t current_step(Communicator const& comm) noexcept;

/// Says which step the rank does, from 1 on. Not collective.
void set_step(Communicator const& comm, std::int64_t step) noexcept;

} // namespace lockstep::comm
