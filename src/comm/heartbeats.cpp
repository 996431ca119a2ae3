#include "comm/heartbeats.hpp"

#include "base/process.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"

#include <type_traits>
#include <unistd.h>

namespace lockstep::comm {

HeartbeatTable const* own_heartbeats(Communicator const& comm) {
    auto const* const heartbeats = comm.heartbeats();
    return heartbeats != nullptr && heartbeats->spoken_for_by_this_thread() ? heartbeats : nullptr;
}

static_assert(std::atomic<std::uint64_t>::is_always_lock_free &&
              std::atomic<Phase>::is_always_lock_free);
static_assert(std::is_trivially_destructible_v<HeartbeatTable::Slot>);

HeartbeatTable::HeartbeatTable(Communicator const& world) : world_size_(world.size()) {
    auto const host = world.split_by_host();
    auto const bytes = [](int ranks) {
        return sizeof(Head) + static_cast<std::size_t>(ranks) * sizeof(Slot);
    };
    auto const refused =
        failure_of([&] { block_ = std::make_unique<SharedBlock>(host, bytes(host.size())); });
    if (refused) { // on all ranks of the host alike
        block_ = std::make_unique<SharedBlock>(Communicator::self(), bytes(1));
    } else {
        size_ = host.size();
        local_ = host.rank();
    }
    head_ = reinterpret_cast<Head*>(block_->data());
    slots_ = reinterpret_cast<Slot*>(block_->data() + sizeof(Head));
    auto& slot = own();
    slot.rank.store(world.rank());
    slot.device.set(world.device());
    auto const process = process_state(::getpid());
    slot.started.store(process ? process->started : 0);
    slot.pid.store(::getpid());
    if (size_ > 1) {
        barrier(host); // from here on every rank's line can be read
    }
}

} // namespace lockstep::comm
