// The program's `new`: it fails with the amount that was asked for, which std::bad_alloc does not
// know and which whoever runs out of memory wants to be told. Not the library's: a program that
// links it chooses its own. Sanitizers have one, too.

#include "base/failed_allocation.hpp"

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

#include <cstdlib>

void* operator new(std::size_t bytes) {
    if (auto* const block = std::malloc(bytes == 0 ? 1 : bytes)) {
        return block;
    }
    throw lockstep::FailedAllocation(bytes);
}

void operator delete(void* block) noexcept {
    std::free(block);
}

void operator delete(void* block, std::size_t) noexcept {
    std::free(block);
}

#endif
