#include "comm/phase_scope.hpp"

#include "base/inject.hpp"
#include "comm/heartbeats.hpp"

namespace lockstep::comm {

PhaseScope::PhaseScope(Communicator const& comm, Phase phase)
    : recorded_(name_of(phase), -1, ScopeKind::phase), heartbeats_(own_heartbeats(comm)) {
    if (heartbeats_ == nullptr) {
        return;
    }
    auto& slot = heartbeats_->own();
    former_ = slot.phase.load(std::memory_order_relaxed);
    slot.phase.store(phase, std::memory_order_relaxed);
    heartbeats_->failed_at_->reset(); // a failure before this one was survived
    heartbeats_->progressed();
    try {
        inject_fault_in(slot.rank.load(std::memory_order_relaxed), name_of(phase),
                        slot.step.load(std::memory_order_relaxed), Names::part);
    } catch (...) {
        failed();
        slot.phase.store(former_, std::memory_order_relaxed); // there is no destructor to do it
        throw;
    }
}

PhaseScope::~PhaseScope() {
    if (heartbeats_ == nullptr) {
        return;
    }
    if (!failed_) {
        heartbeats_->failed_at_->reset();
    }
    heartbeats_->own().phase.store(former_, std::memory_order_relaxed);
    heartbeats_->progressed();
}

void PhaseScope::failed() noexcept {
    failed_ = true;
    if (heartbeats_ == nullptr) {
        return;
    }
    auto& failed_at = *heartbeats_->failed_at_;
    if (!failed_at) { // the innermost phase is the place
        auto const& slot = heartbeats_->own();
        failed_at = {slot.phase.load(std::memory_order_relaxed),
                     slot.step.load(std::memory_order_relaxed)};
    }
}

} // namespace lockstep::comm
