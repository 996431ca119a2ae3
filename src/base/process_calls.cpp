#include "base/process_calls.hpp"

namespace lockstep {

std::atomic<ProcessCalls const*>& process_calls() noexcept {
    static std::atomic<ProcessCalls const*> calls{nullptr};
    return calls;
}

std::atomic<int (*)(int status)>& before_exit() noexcept {
    static std::atomic<int (*)(int)> call{nullptr};
    return call;
}

} // namespace lockstep
