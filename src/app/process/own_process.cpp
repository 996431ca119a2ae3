#include "lockstep/app/own_process.hpp"

#include "base/process_calls.hpp"

#include <algorithm>
#include <limits>
#include <malloc.h>
#include <sys/resource.h>

#include "intercepted.hpp"

namespace lockstep {

namespace {

// Of the allocator: at the start, when there is one thread.

void keep() {
    mallopt(M_MMAP_MAX, 0);                                     // NOLINT(concurrency-mt-unsafe)
    mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max()); // NOLINT(concurrency-mt-unsafe)
}

void give_back() {
    constexpr int large = 1 << 20;
    // Once set, the threshold no longer grows by itself.
    mallopt(M_MMAP_THRESHOLD, large); // NOLINT(concurrency-mt-unsafe)
}

void limit_data(std::uint64_t bytes) {
    rlimit limit{};
    if (getrlimit(RLIMIT_DATA, &limit) == 0) {
        limit.rlim_cur = std::min<rlim_t>(bytes, limit.rlim_max);
        setrlimit(RLIMIT_DATA, &limit);
    }
}

constexpr ProcessCalls ours{
    .keep_large_blocks = keep, .return_large_blocks = give_back, .limit_data = limit_data};

} // namespace

void own_process() noexcept {
    app::link_last_exit();
    app::link_refused_writes();
    process_calls() = &ours;
}

} // namespace lockstep
