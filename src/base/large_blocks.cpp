#include "base/large_blocks.hpp"

#include "base/process_calls.hpp"

namespace lockstep {

void return_large_blocks() {
    if (auto const* const calls = process_calls().load()) {
        calls->return_large_blocks();
    }
}

} // namespace lockstep
