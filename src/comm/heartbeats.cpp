#include "comm/heartbeats.hpp"

#include "base/inject.hpp"
#include "base/process.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"

#include <exception>
#include <type_traits>
#include <unistd.h>

namespace lockstep::comm {

namespace {

/// The heartbeat table of a communicator, if this thread speaks for the rank.
HeartbeatTable const* own_heartbeats(Communicator const& comm) {
    auto const* const heartbeats = comm.heartbeats();
    return heartbeats != nullptr && heartbeats->spoken_for_by_this_thread() ? heartbeats : nullptr;
}

} // namespace

static_assert(std::atomic<std::uint64_t>::is_always_lock_free &&
              std::atomic<Phase>::is_always_lock_free);
static_assert(std::is_trivially_destructible_v<HeartbeatTable::Slot>);

std::string_view name_of(Phase phase) {
    switch (phase) {
    case Phase::start_up:
        return "start-up";
    case Phase::train:
        return "training";
    case Phase::data:
        return "reading data";
    case Phase::compute:
        return "forward and backward";
    case Phase::exchange:
        return "the exchange of gradients";
    case Phase::update:
        return "the update";
    case Phase::validation:
        return "validation";
    case Phase::test:
        return "the test";
    case Phase::checkpoint:
        return "writing a checkpoint";
    case Phase::end:
        return "the end";
    case Phase::reporting:
        return "the last records and pictures";
    }
    return "";
}

std::string_view name_of(Wait wait) {
    switch (wait) {
    case Wait::nothing:
        return "nothing";
    case Wait::barrier:
        return "a barrier";
    case Wait::all_reduce:
        return "an all-reduce";
    case Wait::broadcast:
        return "a broadcast";
    case Wait::all_gather:
        return "an all-gather";
    case Wait::exchange:
        return "the exchange of gradients";
    case Wait::communicator:
        return "making or freeing a communicator";
    case Wait::file:
        return "a collective call on a file";
    case Wait::finalize:
        return "the end of MPI";
    }
    return "";
}

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

PhaseScope::PhaseScope(Communicator const& comm, Phase phase) : heartbeats_(own_heartbeats(comm)) {
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

WaitScope::WaitScope(Communicator const& comm, Wait wait) : heartbeats_(own_heartbeats(comm)) {
    if (heartbeats_ == nullptr ||
        heartbeats_->own().wait.load(std::memory_order_relaxed) != Wait::nothing ||
        comm.size() == 1) {
        heartbeats_ = nullptr;
        return;
    }
    auto& slot = heartbeats_->own();
    // Counted where all ranks take part, so that equal numbers mean the same call.
    if (comm.size() == heartbeats_->world_size()) {
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

SpeakerScope::SpeakerScope(Communicator const& comm)
    : speakers_(comm.heartbeats() != nullptr ? comm.heartbeats()->others_ : nullptr) {
    if (speakers_) {
        speakers_->fetch_add(1);
    }
}

SpeakerScope::~SpeakerScope() {
    if (speakers_) {
        speakers_->fetch_sub(1);
    }
}

ActivityScope::ActivityScope(Communicator const& comm, std::string_view activity)
    : heartbeats_(own_heartbeats(comm)) {
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

} // namespace lockstep::comm
