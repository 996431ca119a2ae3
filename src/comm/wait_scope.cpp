#include "comm/wait_scope.hpp"

#include "comm/heartbeats.hpp"

namespace lockstep::comm {

WaitScope::WaitScope(Communicator const& comm, Wait wait) : heartbeats_(own_heartbeats(comm)) {
    if (comm.size() == 1 ||
        (heartbeats_ != nullptr &&
         heartbeats_->own().wait.load(std::memory_order_relaxed) != Wait::nothing)) {
        heartbeats_ = nullptr;
        return;
    }
    recorded_.emplace(name_of(wait), -1, ScopeKind::wait);
    if (heartbeats_ == nullptr) {
        return; // another thread's
    }
    auto& slot = heartbeats_->own();
    // Counted where all ranks take part, so that equal numbers mean the same call.
    if (comm.size() == heartbeats_->world_size() && wait != Wait::message) {
        slot.collectives.fetch_add(1, std::memory_order_relaxed);
    }
    heartbeats_->progressed();
    slot.wait.store(wait, std::memory_order_relaxed);
}

WaitScope::~WaitScope() {
    if (heartbeats_ != nullptr) {
        heartbeats_->own().wait.store(Wait::nothing, std::memory_order_relaxed);
        heartbeats_->progressed();
    }
}

} // namespace lockstep::comm
