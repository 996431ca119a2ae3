#include "base/large_blocks.hpp"

#include <malloc.h>

namespace lockstep {

void return_large_blocks() {
    constexpr int large = 1 << 20;
    // At the start, when there is one thread. Once set, the threshold no longer grows by itself.
    mallopt(M_MMAP_THRESHOLD, large); // NOLINT(concurrency-mt-unsafe)
}

} // namespace lockstep
