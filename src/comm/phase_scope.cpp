#include "comm/phase_scope.hpp"

#include "base/inject.hpp"
#include "comm/heartbeats.hpp"

#include <exception>

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
        leave(true);
        throw;
    }
}

PhaseScope::~PhaseScope() {
    if (heartbeats_ != nullptr) {
        leave(std::uncaught_exceptions() > 0);
    }
}

void PhaseScope::leave(bool failed) noexcept {
    auto& slot = heartbeats_->own();
    auto& failed_at = *heartbeats_->failed_at_;
    if (!failed) {
        failed_at.reset();
    } else if (!failed_at) { // the innermost phase is the place
        failed_at = {slot.phase.load(std::memory_order_relaxed),
                     slot.step.load(std::memory_order_relaxed)};
    }
    slot.phase.store(former_, std::memory_order_relaxed);
    heartbeats_->progressed();
}

} // namespace lockstep::comm
