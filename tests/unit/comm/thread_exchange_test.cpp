// The exchange with threads for ranks, with pauses in seeded places: what the thread sanitizer
// looks at.

#include "comm/make_tree_exchange.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <latch>
#include <thread>

#include "catch.hpp"
#include "schedule.hpp"

using namespace lockstep;
using namespace lockstep::comm;

namespace {

constexpr std::int64_t size = 9 * reduction_block;
constexpr int ranks = 4;

/// Whether all parameters are `expected` when they have been waited for, in an order and at times
/// that depend on rank and step; some are not waited for.
bool read_parameters(Exchange& exchange, int place, float expected, test::Schedule& schedule) {
    auto const& partition = exchange.partition();
    bool right = true;
    for (int at = 0; at < partition.buckets() - place % 2; ++at) {
        schedule.maybe_pause();
        int const bucket = place % 3 == 0 ? at : partition.buckets() - 1 - at;
        exchange.wait_parameters(bucket);
        right = right && exchange.arrived() >= partition.buckets() - bucket;
        auto const range = partition.bucket(bucket);
        right = right &&
                std::all_of(exchange.parameters() + range.first, exchange.parameters() + range.last,
                            [&](float value) { return value == expected; });
    }
    return right;
}

/// Plays one rank for some steps; whether everything came out right. `waits`: parameters are
/// published before the next step begins.
bool play(Exchange& exchange, int rank, bool waits, test::Schedule& schedule) {
    auto const& partition = exchange.partition();
    bool right = true;
    for (int step = 0; step < 6; ++step) {
        auto sum = exchange.begin();
        auto const before = static_cast<float>(step);
        right = right && read_parameters(exchange, rank + step, before, schedule);
        for (int bucket = 0; bucket < partition.buckets(); ++bucket) {
            auto const range = partition.bucket(bucket);
            for (auto at = range.first; at < range.last; ++at) {
                exchange.gradients()[at] = static_cast<float>(rank + 1) * before;
            }
            schedule.maybe_pause();
            sum.ready(bucket);
        }
        schedule.maybe_pause();
        std::vector<double> step_sums(ranks, 0);
        step_sums[static_cast<std::size_t>(rank)] = step + rank;
        std::vector<std::byte> payload(1, std::byte(rank == 0 ? step : 77));
        std::move(sum).finish(step_sums, payload);
        for (int other = 0; other < ranks; ++other) {
            right = right && step_sums[static_cast<std::size_t>(other)] == step + other;
        }
        right = right && payload[0] == std::byte(step);
        schedule.maybe_pause();
        for (auto const& range : partition.owned(rank)) {
            for (auto at = range.first; at < range.last; ++at) {
                right = right && exchange.gradients()[at] == 10 * before;
                exchange.parameters()[at] += 1;
            }
        }
        schedule.maybe_pause();
        if (waits) {
            exchange.publish();
            right = right && exchange.is_whole();
        } else {
            exchange.begin_publish();
        }
    }
    exchange.wait_whole();
    return right && exchange.is_whole();
}

/// Reads parameters that are lent, in an order of its own, some buckets several times and some not
/// at all; whether all of them are `expected`.
bool borrow(Exchange& exchange, int place, float expected, test::Schedule& schedule) {
    auto const& partition = exchange.partition();
    bool right = true;
    for (int at = 0; at < partition.buckets() + place % 3; ++at) {
        int const bucket = (at * (place % 2 == 0 ? 1 : 3) + place) % partition.buckets();
        if (place % 5 == 0) {
            exchange.ask_for((bucket + 1) % partition.buckets());
        }
        exchange.lend(bucket);
        schedule.maybe_pause();
        auto const range = partition.bucket(bucket);
        right = right &&
                std::all_of(exchange.parameters() + range.first, exchange.parameters() + range.last,
                            [&](float value) { return value == expected; });
        exchange.serve();
        if (at % 4 != 3) { // the others are given back by the sum
            exchange.give_back(bucket);
        }
    }
    return right;
}

/// Plays one rank for some steps, in which ranks hold only their shards.
bool play_shards(Exchange& exchange, int rank, test::Schedule& schedule) {
    auto const& partition = exchange.partition();
    exchange.publish();
    bool right = true;
    for (int step = 0; step < 6; ++step) {
        auto sum = exchange.begin();
        auto const before = static_cast<float>(step);
        right = right && (!exchange.lends() || borrow(exchange, rank + step, before, schedule));
        for (int bucket = 0; bucket < partition.buckets(); ++bucket) {
            if (exchange.lends()) { // as backward reads them, before it has the gradients
                right = right && borrow(exchange, rank + bucket, before, schedule);
            }
            exchange.prepare_gradients(bucket);
            auto const range = partition.bucket(bucket);
            std::fill(exchange.gradients() + range.first, exchange.gradients() + range.last,
                      static_cast<float>(rank + 1) * before);
            schedule.maybe_pause();
            sum.ready(bucket);
        }
        std::vector<double> step_sums(ranks, 0);
        step_sums[static_cast<std::size_t>(rank)] = step + rank;
        std::vector<std::byte> payload(1, std::byte(rank == 0 ? step : 77));
        std::move(sum).finish(step_sums, payload);
        schedule.maybe_pause();
        for (auto const& range : partition.owned(rank)) {
            for (auto at = range.first; at < range.last; ++at) {
                right = right && exchange.gradients()[at] == 10 * before;
                exchange.parameters()[at] += 1;
            }
        }
        exchange.publish();
        if (step % 3 == 2) {
            exchange.wait_whole();
            right = right && exchange.is_whole() &&
                    std::all_of(exchange.parameters(), exchange.parameters() + size,
                                [&](float value) { return value == before + 1; });
        }
    }
    return right;
}

} // namespace

// Whatever the threads' times: what is left is the shortest exposure of all ranks, and the rest has
// become a wait.
TEST_CASE("a rank that is late on another host is waited for, which is no communication") {
    constexpr auto lateness = std::chrono::milliseconds(300);
    auto const exchanges = make_thread_exchanges(
        {.nodes = subtrees_of_ranks(ranks, ranks),
         .partition = Partition(size, ranks, reduction_block, 3 * reduction_block),
         .step_sums = 1,
         .payload = 1,
         .sums_everywhere = true, // nothing else is exposed in publish
         .timeout_seconds = 30},
        {0, 0, 2, 2});
    std::latch others_computed(ranks - 1);
    std::vector<ExchangeCost> finished(ranks);
    std::vector<ExchangeCost> published(ranks);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
        threads.emplace_back([&, rank] {
            auto& exchange = *exchanges[static_cast<std::size_t>(rank)];
            auto sum = exchange.begin();
            if (rank == ranks - 1) {
                others_computed.wait();
                std::this_thread::sleep_for(lateness);
            } else {
                others_computed.count_down();
            }
            for (int bucket = 0; bucket < exchange.partition().buckets(); ++bucket) {
                sum.ready(bucket);
            }
            std::vector<double> step_sums(1, 0);
            std::vector<std::byte> payload(1);
            std::move(sum).finish(step_sums, payload);
            finished[static_cast<std::size_t>(rank)] = exchange.cost();
            exchange.publish();
            published[static_cast<std::size_t>(rank)] = exchange.cost();
        });
    }
    for (auto& thread : threads) {
        thread.join();
    }
    auto const min = std::ranges::min(finished, {}, &ExchangeCost::exposed_s).exposed_s;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        CAPTURE(rank);
        auto const waited = published[rank].imbalance_s - finished[rank].imbalance_s;
        CHECK(std::abs(waited - (finished[rank].exposed_s - min)) < 1e-9);
        CHECK((rank > 1 || published[rank].imbalance_s > 0.1));
    }
}

TEST_CASE("threads for ranks, whatever the schedule") {
    std::vector<std::vector<int>> const hosts{
        {0, 0, 0, 0}, {0, 0, 2, 2}, {0, 1, 2, 2}, {0, 1, 2, 3}};
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
        CAPTURE(seed);
        auto const exchanges = make_thread_exchanges(
            {.nodes = subtrees_of_ranks(6, ranks),
             .partition = Partition(size, ranks, reduction_block, 3 * reduction_block),
             .step_sums = ranks,
             .payload = 1,
             .timeout_seconds = 30,
             .route = Route::halving},
            hosts[seed % hosts.size()]);
        std::vector<char> right(ranks, 0);
        std::vector<std::thread> threads;
        for (int rank = 0; rank < ranks; ++rank) {
            threads.emplace_back([&, rank] {
                auto const at = static_cast<std::size_t>(rank);
                test::Schedule schedule(seed * 131 + static_cast<std::uint64_t>(rank));
                right[at] = play(*exchanges[at], rank, seed < hosts.size(), schedule) ? 1 : 0;
            });
        }
        for (auto& thread : threads) {
            thread.join();
        }
        CHECK(std::all_of(right.begin(), right.end(), [](char each) { return each == 1; }));
    }
}

TEST_CASE("ranks that hold only their shards, whatever the schedule") {
    std::vector<std::vector<int>> const hosts{
        {0, 1, 2, 3}, {0, 0, 2, 2}, {0, 1, 2, 2}, {0, 0, 0, 0}};
    for (std::int64_t seed = 0; seed < 30; ++seed) {
        CAPTURE(seed);
        auto const exchanges = make_thread_exchanges(
            {.nodes = subtrees_of_ranks(seed % 2 == 0 ? ranks : 6, ranks),
             // Some ranks own nothing of some buckets.
             .partition = Partition(size, ranks, reduction_block, (seed % 5 + 1) * reduction_block),
             .step_sums = ranks,
             .payload = 1,
             .shards_gradients = true,
             .shards_parameters = seed % 3 != 0,
             .timeout_seconds = 30,
             .route = seed % 4 < 2 ? Route::halving : Route::direct},
            hosts[static_cast<std::size_t>(seed) % hosts.size()]);
        std::vector<char> right(ranks, 0);
        std::vector<std::thread> threads;
        for (int rank = 0; rank < ranks; ++rank) {
            threads.emplace_back([&, rank] {
                auto const at = static_cast<std::size_t>(rank);
                test::Schedule schedule(static_cast<std::uint64_t>(seed * 131 + rank));
                right[at] = play_shards(*exchanges[at], rank, schedule) ? 1 : 0;
            });
        }
        for (auto& thread : threads) {
            thread.join();
        }
        CHECK(std::all_of(right.begin(), right.end(), [](char each) { return each == 1; }));
    }
}
