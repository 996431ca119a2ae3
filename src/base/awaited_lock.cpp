#include "base/awaited_lock.hpp"

#include "base/awake_clock.hpp"
#include "base/lock_holder.hpp"
#include "base/process.hpp"

#include <chrono>
#include <thread>

namespace lockstep {

namespace {

constexpr double outlives_s = 3; ///< that a run's last process may outlive its mpirun
constexpr double killed_s = 120; ///< the same, where it was killed and runs no more of its own code

bool is_killed(int process) {
    auto const state = process_state(process);
    return !state || state->killed;
}

} // namespace

FileLock awaited_lock(std::filesystem::path const& file, std::function<void()> const& waiting) {
    FileLock lock(file);
    AwakeClock clock;
    double seen_ending_s = 0;
    while (lock.is_held_elsewhere()) {
        auto const waited_s = clock.seconds();
        auto const holder = lock_holder(file).process;
        if (holder > 0 && is_killed(holder) && waited_s < killed_s) {
            seen_ending_s = waited_s;
        }
        if (waited_s - seen_ending_s >= outlives_s) {
            break;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        waiting();
        lock = FileLock(file);
    }
    return lock;
}

} // namespace lockstep
