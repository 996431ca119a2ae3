#include "base/memory.hpp"
#include "comm/shared_block.hpp"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <new>
#include <span>
#include <sys/resource.h>
#include <unistd.h>

#include "catch.hpp"

using namespace lockstep;

namespace {

constexpr std::size_t bytes = std::size_t{64} << 20;

/// The bytes of private memory and stacks, as RLIMIT_DATA counts them.
std::uint64_t data_bytes() {
    std::ifstream file("/proc/self/statm");
    std::uint64_t pages = 0;
    for (int field = 0; field < 6; ++field) {
        file >> pages;
    }
    return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

} // namespace

TEST_CASE("memory without pages does not count against a limit of data") {
    rlimit old{};
    REQUIRE(::getrlimit(RLIMIT_DATA, &old) == 0);
    rlimit const tight{data_bytes() + bytes / 2, old.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_DATA, &tight) == 0);
    CHECK_THROWS_AS(comm::SharedBlock(bytes), std::bad_alloc);
    CHECK_NOTHROW(comm::SharedBlock(bytes, 0));
    CHECK(::setrlimit(RLIMIT_DATA, &old) == 0);
}

TEST_CASE("what a rank alone discards goes back to the system, and comes again as zeros") {
    for (std::size_t const kept : {bytes, std::size_t{0}}) {
        CAPTURE(kept);
        comm::SharedBlock const block(bytes, kept);
        std::span const all(block.data(), bytes);
        std::fill(all.begin(), all.end(), std::byte{1});
        auto const full = resident_memory();
        block.discard(all);
        CHECK(resident_memory() + bytes / 2 < full);
        CHECK(all.front() == std::byte{0});
        CHECK(all.back() == std::byte{0});
    }
}
