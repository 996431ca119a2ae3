#include "base/random.hpp"
#include "data/order.hpp"

#include <algorithm>
#include <chrono>
#include <set>
#include <vector>

#include "catch.hpp"

using namespace lockstep;
using data::Permutation;

namespace {

std::vector<std::int64_t> all_of(Permutation const& order, std::int64_t n) {
    std::vector<std::int64_t> elements;
    for (std::int64_t position = 0; position < n; ++position) {
        elements.push_back(order(position));
    }
    return elements;
}

} // namespace

TEST_CASE("every element has exactly one position") {
    for (std::int64_t const n : {1, 2, 3, 4, 5, 15, 16, 17, 64, 65, 1000, 4097, 60000}) {
        for (std::uint64_t const key : {0ULL, 1ULL, 0xdeadbeefULL, ~0ULL}) {
            CAPTURE(n, key);
            std::vector<bool> seen(static_cast<std::size_t>(n), false);
            bool once = true;
            for (auto const element : all_of(Permutation(n, key), n)) {
                bool const inside = element >= 0 && element < n;
                once = once && inside && !seen[static_cast<std::size_t>(element)];
                if (inside) {
                    seen[static_cast<std::size_t>(element)] = true;
                }
            }
            CHECK(once);
        }
    }
}

TEST_CASE("the same key gives the same order, another key another") {
    CHECK(all_of(Permutation(1000, 7), 1000) == all_of(Permutation(1000, 7), 1000));
    CHECK(all_of(Permutation(1000, 7), 1000) != all_of(Permutation(1000, 8), 1000));
}

TEST_CASE("every element comes first about equally often") {
    constexpr std::int64_t n = 10;
    constexpr int draws = 4000;
    std::vector<int> first(n, 0);
    for (std::uint64_t epoch = 0; epoch < draws; ++epoch) {
        Permutation const order(n, random_key(3, Stream::order, {epoch}));
        ++first[static_cast<std::size_t>(order(0))];
    }
    // 400 each; 19 is a standard deviation.
    for (auto const count : first) {
        CHECK(count > 300);
        CHECK(count < 500);
    }
}

TEST_CASE("neighbours do not stay neighbours") {
    constexpr std::int64_t n = 60000;
    auto const order = all_of(Permutation(n, random_key(0, Stream::order, {0})), n);
    int neighbours = 0;
    for (std::size_t i = 1; i < order.size(); ++i) {
        neighbours += order[i] == order[i - 1] + 1 ? 1 : 0;
    }
    CHECK(neighbours < 10); // one is expected
}

TEST_CASE("blocks are permuted, and the samples of a window of them") {
    std::uint64_t key = 7;
    for (std::int64_t const n : {1, 2, 5, 16, 17, 99, 1000, 4097}) {
        for (data::Blocks const blocks :
             {data::Blocks{1, 1}, {1, 8}, {4, 1}, {4, 3}, {16, 2}, {5000, 4}}) {
            CAPTURE(n, blocks.samples, blocks.window);
            data::BlockPermutation const order(n, ++key, blocks);
            std::vector<int> times(static_cast<std::size_t>(n), 0);
            std::set<std::int64_t> open;
            std::int64_t reopened = 0;
            std::set<std::int64_t> met;
            for (std::int64_t position = 0; position < n; ++position) {
                auto const sample = order(position);
                REQUIRE(sample >= 0);
                REQUIRE(sample < n);
                ++times[static_cast<std::size_t>(sample)];
                auto const block = sample / blocks.samples;
                if (open.insert(block).second) {
                    reopened += met.insert(block).second ? 0 : 1;
                    // A window is full: whoever reads may forget the blocks of the one before.
                    if (static_cast<std::int64_t>(open.size()) > 2 * blocks.window) {
                        open = {block};
                    }
                }
            }
            CHECK(std::all_of(times.begin(), times.end(), [](int t) { return t == 1; }));
            CHECK(reopened <= static_cast<std::int64_t>(met.size()) / 2);
        }
    }
}

TEST_CASE("the first sample of 10^12 is there at once") {
    std::int64_t const n = 1'000'000'000'000;
    auto const begin = std::chrono::steady_clock::now();
    for (std::int64_t i = 0; i < 10; ++i) {
        CHECK(Permutation(n, 3)(i) < n);
        CHECK(data::BlockPermutation(n, 3, {1000, 16})(n - 1 - i) < n);
    }
    std::chrono::duration<double> const seconds = std::chrono::steady_clock::now() - begin;
    CHECK(seconds.count() < 10 * 1e-3);
}
