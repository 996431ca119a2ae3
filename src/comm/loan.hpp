#pragma once

#include <atomic>
#include <cstdint>

namespace lockstep::comm {

/// Whether the ranks of a host have a bucket of other hosts' parameters, and how many use it: in
/// the memory that they share. All zeros: nobody has it.
struct alignas(64) Loan {
    enum class Phase : std::uint16_t {
        absent,  ///< it has no memory
        busy,    ///< a rank fetches it, or gives its memory away
        present, ///< it has the version's values, until the last user gives it back
    };
    struct State {
        Phase phase = Phase::absent;
        std::int16_t users = 0;
        std::uint32_t version = 0; ///< of the parameters
    };

    State load() const noexcept { return state.load(std::memory_order_acquire); }
    /// Sets `next` where it is still as `before`.
    bool change(State before, State next) noexcept {
        return state.compare_exchange_strong(before, next, std::memory_order_acq_rel);
    }

    std::atomic<State> state;
};
static_assert(std::atomic<Loan::State>::is_always_lock_free);

} // namespace lockstep::comm
