#include "base/random.hpp"
#include "trace/clock_offset.hpp"

#include <cmath>
#include <vector>

#include "catch.hpp"

using namespace lockstep;
using trace::PingPong;

namespace {

constexpr std::int64_t second = 1'000'000'000;

/// Exchanges with a clock that is ahead by `offset`, each way delayed by at least 10 microseconds,
/// and at random by up to a millisecond more.
std::vector<PingPong> exchanges(std::int64_t start, std::int64_t offset, std::uint64_t seed) {
    std::vector<PingPong> all;
    auto now = start;
    for (std::uint64_t i = 0; i < 100; ++i) {
        auto const delay = [&](std::uint64_t way) {
            auto const share =
                static_cast<double>(random_key(seed, Stream::dropout, {i, way}) >> 11U) /
                static_cast<double>(std::uint64_t{1} << 53U);
            return 10'000 + static_cast<std::int64_t>(1e6 * std::pow(share, 4));
        };
        PingPong exchange{.sent = now};
        auto const there = now + delay(0);
        exchange.answered = there + offset;
        exchange.received = there + delay(1);
        now = exchange.received + 1000;
        all.push_back(exchange);
    }
    return all;
}

} // namespace

TEST_CASE("the offset of a clock is that of the shortest round trip") {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        auto const found = trace::estimated_offset(exchanges(5 * second, second, seed));
        CHECK(std::abs(found.offset_ns - second) <= found.error_ns);
        CHECK(found.error_ns < 50'000);
        CHECK(found.at_ns > 6 * second);
    }
    std::vector<PingPong> const one{{.sent = 100, .answered = 5000, .received = 300}};
    CHECK(trace::estimated_offset(one).offset_ns == 4800);
    CHECK(trace::estimated_offset(one).error_ns == 100);
    CHECK(trace::estimated_offset({}).offset_ns == 0);
}

TEST_CASE("a clock that drifts is corrected between and beyond its two comparisons") {
    // 100 microseconds fast per second, and 3 s ahead at its time 10 s.
    auto const theirs = [](std::int64_t ours) {
        return ours + 3 * second + (ours - 7 * second) / 10'000;
    };
    auto const offset_at = [&](std::int64_t ours) {
        return trace::ClockOffset{.at_ns = theirs(ours), .offset_ns = theirs(ours) - ours};
    };
    trace::ClockCorrection const clock(offset_at(7 * second), offset_at(20 * second));
    for (std::int64_t const ours : {7 * second, 9 * second, 20 * second, 25 * second}) {
        CHECK(std::abs(clock.corrected(theirs(ours)) - ours) < 10);
    }
    CHECK(trace::ClockCorrection().corrected(5) == 5);
}
