#include "comm/progress.hpp"

#include "comm/heartbeats.hpp"

namespace lockstep::comm {

void progressed(Communicator const& comm) noexcept {
    if (comm.heartbeats() != nullptr) {
        comm.heartbeats()->progressed();
    }
}

std::int64_t current_step(Communicator const& comm) noexcept {
    auto const* const heartbeats = own_heartbeats(comm);
    return heartbeats == nullptr ? 0 : heartbeats->own().step.load(std::memory_order_relaxed);
}

void set_step(Communicator const& comm, std::int64_t step) noexcept {
    if (comm.heartbeats() != nullptr) {
        comm.heartbeats()->set_step(step);
    }
}

void name_devices(Communicator const& comm, std::string_view devices) noexcept {
    if (comm.heartbeats() != nullptr) {
        comm.heartbeats()->set_device(devices);
    }
}

} // namespace lockstep::comm
