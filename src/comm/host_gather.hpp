#pragma once

#include "comm/host_schedule.hpp"
#include "comm/partition.hpp"
#include "comm/wire.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "host_slots.hpp"

namespace lockstep::comm {

/// The way back: the owners' shards of an array reach all hosts, by the schedule in reverse. The
/// last bucket of backward comes first, as forward needs it first; each bucket passes through the
/// stages by itself, while the caller does something else.
class HostGather {
  public:
    /// What it is given outlives it.
    struct Setup {
        Wire* wire; ///< null: one host, nothing to do
        Partition const& partition;
        HostSchedule const& schedule;
        HostSlots const& slots;
    };
    explicit HostGather(Setup const& parts);

    /// Sends this rank's shards of `array`, and posts all receives; the sums of a step, which use
    /// the same room, are not under way. Afterwards `array` has the shards of all ranks that this
    /// rank serves.
    void begin(float* array);
    /// Does what can be done without waiting.
    void advance();
    /// Buckets, counted from the last one, whose shards are there.
    int finished() const noexcept { return finished_; }
    /// Whether all are there, and nothing is to be sent any more; once it is so, it remains so.
    bool is_done();
    /// Throws  Error 76 when it is not done in time
    void wait(double timeout_seconds);

    /// What was sent since `begin`; complete at its end.
    std::int64_t bytes() const noexcept { return bytes_; }
    std::int64_t messages() const noexcept { return messages_; }

  private:
    using Slot = HostSlots::Slot;

    int bucket_at(int place) const { return parts_.partition.buckets() - 1 - place; }
    std::size_t stages() const { return parts_.schedule.stages().size(); }
    std::size_t count(Slot const& slot, int bucket) const;
    std::span<float> part(Slot const& slot, int bucket) const;
    void post(int place);
    void count_sends();
    bool send_next(int place);
    bool take_next(int place);
    void send(std::size_t stage, int bucket);
    void take(std::size_t stage, int bucket);
    template <class Action>
    void for_each_shard(Slot const& slot, int bucket, Action&& action) const;

    Setup parts_;
    float* array_ = nullptr;
    std::vector<std::unique_ptr<Flight>> arriving_; ///< [places × stages]
    std::unique_ptr<Flight> leaving_;
    std::vector<std::size_t> sent_;  ///< stages, from the root's on, whose messages have left
    std::vector<std::size_t> taken_; ///< stages of which all has arrived
    int finished_ = 0;
    std::int64_t bytes_ = 0;
    std::int64_t messages_ = 0;
};

} // namespace lockstep::comm
