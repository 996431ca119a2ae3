#include "base/memory.hpp"

#include "base/process_calls.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <malloc.h>
#include <optional>
#include <sstream>
#include <string>
#include <sys/resource.h>

namespace lockstep {

namespace {

constexpr auto unlimited = std::numeric_limits<std::uint64_t>::max();

std::optional<std::uint64_t> number_in(std::string const& path) {
    std::ifstream file(path);
    std::uint64_t value = 0;
    if (file >> value) {
        return value;
    }
    return std::nullopt;
}

/// The memory of this process's own control group that is still free, where it has a limit.
std::uint64_t group_headroom() {
    std::ifstream groups("/proc/self/cgroup");
    std::string line;
    std::uint64_t headroom = unlimited;
    while (std::getline(groups, line)) {
        auto const first = line.find(':');
        auto const second = line.find(':', first + 1);
        if (second == std::string::npos) {
            continue;
        }
        auto const controllers = line.substr(first + 1, second - first - 1);
        auto const group = line.substr(second + 1);
        std::optional<std::uint64_t> limit;
        std::optional<std::uint64_t> used;
        if (controllers.empty()) {
            limit = number_in("/sys/fs/cgroup" + group + "/memory.max");
            used = number_in("/sys/fs/cgroup" + group + "/memory.current");
        } else if (controllers == "memory") {
            auto const base = "/sys/fs/cgroup/memory" + group;
            limit = number_in(base + "/memory.limit_in_bytes");
            used = number_in(base + "/memory.usage_in_bytes");
        }
        if (limit && used) {
            headroom = std::min(headroom, *limit > *used ? *limit - *used : 0);
        }
    }
    return headroom;
}

/// A line "NAME:  N kB" of a /proc file, in bytes.
std::uint64_t kilobytes_in(char const* path, std::string const& name) {
    std::ifstream file(path);
    std::string line;
    while (std::getline(file, line)) {
        if (line.compare(0, name.size() + 1, name + ":") == 0) {
            std::istringstream rest(line.substr(name.size() + 1));
            std::uint64_t kilobytes = 0;
            rest >> kilobytes;
            return kilobytes * 1024;
        }
    }
    return 0;
}

/// What a limit of this process (RLIMIT_AS, RLIMIT_DATA) leaves of what the kernel counts by
/// `name`.
std::uint64_t headroom(decltype(RLIMIT_AS) resource, std::string const& name) {
    rlimit limit{};
    if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
        return unlimited;
    }
    auto const used = kilobytes_in("/proc/self/status", name);
    return limit.rlim_cur > used ? limit.rlim_cur - used : 0;
}

/// Enough for a message and a record of it; addresses alone, until somebody writes there.
constexpr std::size_t reserve_bytes = std::size_t{1} << 20;
std::atomic<void*> reserve{std::malloc(reserve_bytes)};

/// What this host and the control group can give to all processes together.
std::uint64_t memory_of_all() {
    return std::min(kilobytes_in("/proc/meminfo", "MemAvailable"), group_headroom());
}

} // namespace

std::uint64_t address_space_left() {
    return headroom(RLIMIT_AS, "VmSize");
}

std::uint64_t available_memory() {
    return std::min(memory_of_all(), address_space_left());
}

std::uint64_t memory_share(int processes) {
    return std::min({memory_of_all() / static_cast<std::uint64_t>(processes), address_space_left(),
                     headroom(RLIMIT_DATA, "VmData")});
}

// Of private memory the kernel knows no peak; large blocks are kept (see below), so it hardly
// falls.
std::uint64_t memory_left_at_peak() {
    auto const left =
        std::min({memory_of_all(), headroom(RLIMIT_AS, "VmPeak"), headroom(RLIMIT_DATA, "VmData")});
    bool const released = reserve.load() == nullptr; // since then
    return left - (released ? std::min<std::uint64_t>(left, reserve_bytes) : 0);
}

void release_reserve() noexcept {
    std::free(reserve.exchange(nullptr));
}

std::uint64_t resident_memory() {
    return kilobytes_in("/proc/self/status", "VmRSS");
}
std::uint64_t peak_memory() {
    return kilobytes_in("/proc/self/status", "VmHWM");
}
void return_freed_memory() noexcept {
    ::malloc_trim(0);
}
void forget_peak_memory() {
    return_freed_memory();
    std::ofstream("/proc/self/clear_refs") << "5"; // proc(5): resets the peak resident set
}
std::uint64_t proportional_memory() {
    return kilobytes_in("/proc/self/smaps_rollup", "Pss");
}

void limit_memory(std::uint64_t more) {
    if (auto const* const calls = process_calls().load()) {
        calls->limit_data(kilobytes_in("/proc/self/status", "VmData") + more);
    }
}

void keep_large_blocks() {
    if (auto const* const calls = process_calls().load()) {
        calls->keep_large_blocks();
    }
}

} // namespace lockstep
