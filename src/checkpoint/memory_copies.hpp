#pragma once

#include "checkpoint/memory_copy.hpp"
#include "checkpoint/snapshot.hpp"
#include "comm/host_layout.hpp"
#include "comm/speaker_scope.hpp"
#include "comm/wire.hpp"
#include "lockstep/comm/communicator.hpp"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

namespace lockstep::checkpoint {

/// Room in a slot for what a table gains with the history of the metrics, in bytes.
inline constexpr std::size_t room_to_grow = std::size_t{1} << 20;

/// Copies of a run's state in memory, from which its job continues when ranks are lost: each rank
/// keeps its own parts on its host, and sends them to a rank of the next host, in a ring. There are
/// two copies of everything in turns, so that one is whole while the other is written.
///
/// `begin` returns when this rank's parts are copied; a thread sends them, on a communicator of its
/// own. The next one may begin when no rank `is_busy` any more, which the ranks have to tell each
/// other. Files stay when the object is destroyed: they are for the next attempt.
class MemoryCopies {
  public:
    struct Setup {
        std::uint64_t run = 0; ///< as in CopyHeader
        std::uint64_t job = 0;
        std::uint64_t attempt = 0;
        std::filesystem::path directory = memory_directory;
        comm::HostLayout layout{};
    };

    /// Gets memory for copies like this snapshot. `world` must outlive it.
    ///
    /// Collective  over `world`
    /// Throws      AgreedError 69 when a host has too little memory, or where MPI does not provide
    ///             MPI_THREAD_MULTIPLE
    MemoryCopies(comm::Communicator const& world, Setup const& setup, Snapshot const& like);
    MemoryCopies(MemoryCopies const&) = delete;
    MemoryCopies& operator=(MemoryCopies const&) = delete;
    /// Gives up a copy that is on its way. Not collective.
    ~MemoryCopies();

    /// Whether a copy is on its way to or from this rank.
    bool is_busy() const noexcept { return busy_.load(std::memory_order_acquire); }
    /// Whether this rank can make no more copies: its host has no memory for longer ones.
    bool has_failed() const noexcept { return failed_.load(std::memory_order_relaxed); }

    /// Begins the copy of a step. All ranks begin the same ones, and none is busy. Does not wait.
    void begin(Snapshot const& snapshot, std::int64_t step);
    /// Waits until this rank is no longer busy, for which the other ranks need not do anything but
    /// have begun, or until so many seconds have passed.
    void settle(double seconds);

    /// Removes what other attempts have left on this host. Not collective.
    void remove_older() const noexcept;

    /// Seconds of a processor that the thread took for the last copy that has ended.
    double processor_seconds() const noexcept {
        return processor_s_.load(std::memory_order_relaxed);
    }

  private:
    using Slots = std::vector<std::unique_ptr<MemorySlot>>; ///< used in turns
    struct Guest { ///< a rank whose parts are kept here, too
        int rank = 0;
        Slots slots;
        std::vector<std::byte> header{};
        std::vector<std::byte> sink{}; ///< for contents that there is no memory for
    };
    /// What messages may read and write, also after this object has ended.
    struct Room {
        Slots own;
        std::vector<std::byte> header;
        std::vector<Guest> guests;
    };
    struct Work {
        CopyHeader header;
        std::size_t slot = 0;
        comm::SpeakerScope speaker;
    };

    void remove() const noexcept;
    Slots make_slots(int rank, std::uint64_t capacity);
    void serve(std::stop_token const& stop);
    bool transfer(Work const& work, std::stop_token const& stop);
    bool exchange_headers(CopyHeader const& header, std::stop_token const& stop);

    comm::Communicator const& world_;
    Setup setup_;
    int neighbour_ = -1; ///< where this rank's parts go; -1: nowhere
    std::shared_ptr<Room> room_ = std::make_shared<Room>();
    std::uint64_t count_ = 0; ///< of copies that have begun
    std::atomic<bool> busy_{false};
    std::atomic<bool> failed_{false};
    std::atomic<double> processor_s_{0};
    std::mutex mutex_; ///< of `work_`
    std::condition_variable_any wake_;
    std::optional<Work> work_;
    std::unique_ptr<comm::Wire> wire_; ///< the thread's
    std::jthread thread_;              ///< it uses everything above
};

} // namespace lockstep::checkpoint
