#include "comm/activity_scope.hpp"

#include "base/inject.hpp"
#include "comm/heartbeats.hpp"

namespace lockstep::comm {

ActivityScope::ActivityScope(Communicator const& comm, std::string_view activity)
    : recorded_(activity), heartbeats_(own_heartbeats(comm)) {
    if (heartbeats_ != nullptr) {
        auto& slot = heartbeats_->own();
        slot.activity.set(activity);
        heartbeats_->progressed();
        inject_fault_in(slot.rank.load(std::memory_order_relaxed), activity,
                        slot.step.load(std::memory_order_relaxed), Names::whole);
    }
}

ActivityScope::~ActivityScope() {
    if (heartbeats_ != nullptr) {
        heartbeats_->own().activity.set("");
        heartbeats_->progressed();
    }
}

} // namespace lockstep::comm
