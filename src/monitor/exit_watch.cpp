#include "exit_watch.hpp"

#include <cstdlib>
#include <mutex>

namespace lockstep::monitor {

struct ExitWatch::State {
    std::mutex mutex;
    std::function<void(int)> called;
};

ExitWatch::ExitWatch(std::function<void(int status)> called)
    : state_(new State{.mutex = {}, .called = std::move(called)}) {
    come_first();
}

void ExitWatch::come_first() {
    ::on_exit(
        [](int status, void* argument) {
            auto& state = *static_cast<State*>(argument);
            std::unique_lock const lock(state.mutex, std::try_to_lock);
            if (lock.owns_lock() && state.called) {
                state.called(status);
            }
        },
        state_);
}

ExitWatch::~ExitWatch() {
    std::scoped_lock const lock(state_->mutex);
    state_->called = nullptr;
}

} // namespace lockstep::monitor
