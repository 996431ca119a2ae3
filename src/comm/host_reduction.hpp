#pragma once

#include "comm/host_schedule.hpp"
#include "comm/hosts.hpp"
#include "comm/make_tree_exchange.hpp"
#include "comm/tree_sum.hpp"
#include "comm/wire.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "host_memory.hpp"
#include "host_slots.hpp"

namespace lockstep::comm {

/// The part of a step's sums that is made between hosts, by one rank: it follows its schedule for
/// every bucket, and buckets pass through its stages one after the other. Sums are made in the
/// gradients' memory; messages arrive in memory of their own.
class HostReduction {
  public:
    /// Constructor arguments; `wire`, `options` and `hosts` must outlive it.
    struct Setup {
        Wire* wire; ///< null: one host, nothing to do
        TreeExchangeOptions const& options;
        Hosts const& hosts;
        HostSchedule schedule;
        HostMemory memory;
        int rank;
    };
    explicit HostReduction(Setup parts);
    HostReduction(HostReduction const&) = delete;
    HostReduction& operator=(HostReduction const&) = delete;
    ~HostReduction() = default;

    HostSchedule const& schedule() const noexcept { return schedule_; }
    /// What was sent since `begin`.
    std::int64_t bytes() const noexcept { return bytes_; }
    std::int64_t messages() const noexcept { return messages_; }

    /// Posts the receives of a step; those of earlier steps must not be needed any more.
    void begin();
    /// Does what can be done without waiting for the first `buckets` buckets, whose sums over this
    /// host's ranks are complete.
    void advance(int buckets);
    /// Buckets of which this rank's shard is summed over all hosts.
    int finished() const noexcept { return finished_; }
    /// Whether bucket `index` has its sum, and its messages have left.
    bool is_done(int index);
    /// Throws  Error 76 when what was sent has not left in time
    void wait_sent();

    /// Where messages lie, also on the way back.
    HostSlots const& slots() const noexcept { return slots_; }

  private:
    using Slot = HostSlots::Slot;

    bool rounds() const { return options_.rounding != Rounding::none; }
    std::int64_t count_of(int bucket, int owner) const {
        return options_.partition.shard(bucket, owner).count();
    }
    /// Whether a message that is sent is one shard, which leaves from where it lies.
    bool in_place(HostSchedule::Message const& message) const {
        return !rounds() && message.entries.size() == 1;
    }
    float* own(int home, int bucket, int owner) const;
    std::span<std::byte> carried(Slot const& slot, int bucket) const;
    std::vector<std::vector<Slot>>
    slots_of(std::vector<HostSchedule::Message> HostSchedule::Stage::*messages,
             std::int64_t& end) const;
    bool send_next(int bucket);
    bool add_next(int bucket);
    void send(std::size_t stage, int bucket);
    void add(std::size_t stage, int bucket);
    void unpack(Slot const& slot, int bucket);
    void discard(Slot const& slot, int bucket);

    Wire* wire_;
    TreeExchangeOptions const& options_;
    Hosts const& hosts_;
    HostSchedule schedule_;
    HostMemory memory_;
    int rank_;
    std::vector<TreeSum> sums_; ///< of each stage
    HostSlots slots_;

    std::vector<std::unique_ptr<Flight>> arriving_; ///< [buckets × stages]
    std::vector<std::unique_ptr<Flight>> leaving_;  ///< [buckets]
    std::vector<std::size_t> sent_;  ///< stages of each bucket whose messages have left
    std::vector<std::size_t> added_; ///< stages of each bucket that are done
    int finished_ = 0;
    std::int64_t bytes_ = 0;
    std::int64_t messages_ = 0;
};

} // namespace lockstep::comm
