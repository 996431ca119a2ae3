#pragma once

#include "comm/host_schedule.hpp"
#include "comm/partition.hpp"
#include "comm/shared_block.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "host_memory.hpp"

namespace lockstep::comm {

/// Where the values of a rank's messages between hosts lie, for each bucket: in the same room on
/// the way to the sums and on the way back, which are never under way at once.
struct HostSlots {
    struct Slot {
        HostSchedule::Message const* message;
        std::vector<std::int64_t> bounds; ///< [buckets + 1], in the room of all values

        /// First and number of a bucket's values.
        std::size_t first(int bucket) const {
            return static_cast<std::size_t>(bounds[static_cast<std::size_t>(bucket)]);
        }
        std::size_t count(int bucket) const {
            return static_cast<std::size_t>(bounds[static_cast<std::size_t>(bucket) + 1]) -
                   first(bucket);
        }
    };
    /// What MPI may read and write while messages are under way.
    struct Buffers {
        /// `sparse`: few of the messages are there at once
        Buffers(HostMemory arrays, std::size_t count, bool rounds, bool sparse)
            : memory(std::move(arrays)),
              room(count * sizeof(float), sparse ? 0 : count * sizeof(float)),
              packed_room(rounds ? count * sizeof(std::uint16_t) : 0,
                          rounds && !sparse ? count * sizeof(std::uint16_t) : 0),
              values(reinterpret_cast<float*>(room.data()), count),
              packed(reinterpret_cast<std::uint16_t*>(packed_room.data()), rounds ? count : 0) {}

        HostMemory memory;
        SharedBlock room;
        SharedBlock packed_room;
        std::span<float> values;         ///< in the slots
        std::span<std::uint16_t> packed; ///< the same places in 16 bits; where sums are rounded
    };

    std::vector<std::vector<Slot>> sends{};    ///< [stages, messages]
    std::vector<std::vector<Slot>> receives{}; ///< [stages, messages]
    std::shared_ptr<Buffers> buffers{};        ///< null: there are no other hosts
};

} // namespace lockstep::comm
