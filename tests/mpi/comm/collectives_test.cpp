#include "base/text.hpp"
#include "comm/collectives.hpp"
#include "comm/messages.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <numeric>
#include <thread>

#include "catch.hpp"
#include "world.hpp"

using namespace lockstep;

TEMPLATE_TEST_CASE("a broadcast copies the root's values, whoever the root is", "", std::byte, int,
                   std::int64_t, std::uint64_t, float, double) {
    auto const& world = test::world();
    for (int root = 0; root < world.size(); ++root) {
        std::vector<TestType> values(17, static_cast<TestType>(world.rank() + 1));
        comm::broadcast(world, std::span(values), root);
        CHECK(values == std::vector<TestType>(17, static_cast<TestType>(root + 1)));
    }
}

TEST_CASE("a text is broadcast whatever the others held, and may be empty") {
    auto const& world = test::world();
    for (auto const* text : {"", "short", "one that is certainly not kept inside the string"}) {
        int const root = world.size() - 1;
        std::string mine = world.rank() == root ? text : "something else";
        comm::broadcast_text(world, mine, root);
        CHECK(mine == text);
    }
}

TEST_CASE("reductions are over all ranks, element by element") {
    auto const& world = test::world();
    int const ranks = world.size();
    std::vector<double> values{1.0 * world.rank(), 10.0};
    comm::all_reduce(world, std::span(values), comm::Reduce::sum);
    CHECK(values == std::vector<double>{ranks * (ranks - 1) / 2.0, 10.0 * ranks});
    CHECK(comm::all_reduce(world, world.rank(), comm::Reduce::maximum) == ranks - 1);
    CHECK(comm::all_reduce(world, std::int64_t{5} - world.rank(), comm::Reduce::minimum) ==
          5 - (ranks - 1));
    std::vector<float> nothing;
    comm::all_reduce(world, std::span(nothing), comm::Reduce::sum);
    CHECK(nothing.empty());
}

TEST_CASE("the value of every rank arrives by rank") {
    auto const& world = test::world();
    auto const values = comm::all_gather(world, 3.5 * world.rank());
    CHECK(values.size() == static_cast<std::size_t>(world.size()));
    for (std::size_t rank = 0; rank < values.size(); ++rank) {
        CHECK(values[rank] == 3.5 * static_cast<double>(rank));
    }
}

TEST_CASE("slices of different length, one of them empty, are gathered in place") {
    auto const& world = test::world();
    auto const me = static_cast<std::size_t>(world.rank());
    // Rank r has 3 r elements: the first has none.
    std::vector<std::int64_t> bounds(static_cast<std::size_t>(world.size()) + 1, 0);
    for (std::size_t rank = 0; rank + 1 < bounds.size(); ++rank) {
        bounds[rank + 1] = bounds[rank] + 3 * static_cast<std::int64_t>(rank);
    }
    std::vector<float> whole(static_cast<std::size_t>(bounds.back()), -1);
    for (auto i = bounds[me]; i < bounds[me + 1]; ++i) {
        whole[static_cast<std::size_t>(i)] = static_cast<float>(i);
    }
    comm::all_gather_slices(world, std::span(whole), bounds);
    std::vector<float> expected(whole.size());
    std::iota(expected.begin(), expected.end(), 0.0F);
    CHECK(whole == expected);
}

TEST_CASE("texts of different length are gathered by rank") {
    auto const& world = test::world();
    auto const texts = comm::all_gather_text(
        world, std::string(static_cast<std::size_t>(world.rank()), 'x') + "|");
    CHECK(texts.size() == static_cast<std::size_t>(world.size()));
    for (std::size_t rank = 0; rank < texts.size(); ++rank) {
        CHECK(texts[rank] == std::string(rank, 'x') + "|");
    }
}

TEST_CASE("texts that ranks have alike are gathered, on rank 0 or on all") {
    auto const& world = test::world();
    auto const of = [](int rank) {
        return rank == 1 ? std::string() : concat("of ", rank / 3 * 3);
    };
    std::vector<std::string> expected;
    for (int rank = 0; rank < world.size(); ++rank) {
        expected.push_back(of(rank));
    }
    CHECK(comm::all_gather_text(world, of(world.rank())) == expected);
    auto const on_root = comm::gather_text(world, of(world.rank()));
    CHECK(on_root == (world.is_root() ? expected : std::vector<std::string>{}));
}

TEST_CASE("a condition holds on all ranks only when none says no") {
    auto const& world = test::world();
    CHECK(comm::all_ranks(world, true));
    for (int rank = 0; rank < world.size(); ++rank) {
        CHECK_FALSE(comm::all_ranks(world, world.rank() != rank));
    }
}

TEST_CASE("nobody leaves a barrier before the last one has come") {
    auto const& world = test::world();
    // One clock for all processes of a host; the tests run on one.
    auto const now = [] {
        return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
            .count();
    };
    int const last = world.size() - 1;
    if (world.rank() == last) {
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
    double came = now();
    comm::barrier(world);
    double const left = now();
    comm::broadcast(world, std::span(&came, 1), last);
    CHECK(left >= came);
}

TEST_CASE("what others wait for keeps its memory where its sender gives up") {
    auto const& world = test::world();
    if (world.size() == 1) {
        return; // nobody to wait for
    }
    constexpr std::size_t length = std::size_t{1} << 23; // too long to be sent ahead
    std::vector<std::byte> bytes(length, std::byte(world.is_root() ? 5 : 0));
    std::array<std::byte, 1> word{};
    if (world.is_root()) {
        CHECK_THROWS_AS(comm::broadcast_with_deadline(world, bytes, 0.05), Error);
        bytes.assign(length, std::byte{7}); // both its own memory and what it gets next
        std::vector<std::byte> const next(length, std::byte{7});
        for (int rank = 1; rank < world.size(); ++rank) {
            comm::send(world, word, rank);
        }
        comm::barrier(world);
    } else {
        comm::receive(world, word, 0); // it has given up
        comm::broadcast_with_deadline(world, bytes, 60);
        comm::barrier(world);
        CHECK(std::ranges::count(bytes, std::byte{5}) == static_cast<std::ptrdiff_t>(length));
    }
}

// Hidden: it takes gigabytes.
TEST_CASE("a broadcast of more than 2 GiB arrives whole", "[.large]") {
    auto const& world = test::world();
    constexpr std::size_t length = (std::size_t{1} << 31) + 7;
    std::vector<std::byte> bytes(length, std::byte(world.is_root() ? 5 : 0));
    comm::broadcast_with_deadline(world, bytes, 300);
    auto const right = std::ranges::count(bytes, std::byte{5});
    CHECK(right == static_cast<std::ptrdiff_t>(length));
}
