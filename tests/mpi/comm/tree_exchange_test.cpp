// Sums in tree order over shared memory and over messages: the same bits as a sum made by hand, for
// any number of ranks and however they are spread over hosts.

#include "comm/collectives.hpp"
#include "comm/make_tree_exchange.hpp"
#include "comm/rounding.hpp"
#include "comm/tree_sum.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <cmath>

#include "catch.hpp"
#include "tree_values.hpp"
#include "world.hpp"

using namespace lockstep;
using namespace lockstep::comm;
using lockstep::test::world;

namespace {

constexpr int replicas = 7;
constexpr std::int64_t size = 11 * reduction_block;

TreeExchangeOptions options_for(int ranks_per_host, bool everywhere,
                                Rounding rounding = Rounding::none, Route route = Route::halving) {
    return {.nodes = subtrees_of_ranks(replicas, world().size()),
            .partition = Partition(size, world().size(), reduction_block, 4 * reduction_block),
            .step_sums = 3,
            .payload = 5,
            .sums_everywhere = everywhere,
            .rounding = rounding,
            .timeout_seconds = 20,
            .hosts = ranks_per_host > 0 ? HostLayout::of_neighbours(ranks_per_host) : HostLayout(),
            .route = route};
}

void one_step(Exchange& exchange, GradientSum sum, TreeNode node, int step, bool everywhere,
              Rounding rounding = Rounding::none) {
    auto const& partition = exchange.partition();
    auto const own = test::tree_order(node, size, step, rounding);
    for (int bucket = 0; bucket < partition.buckets(); ++bucket) {
        auto const range = partition.bucket(bucket);
        std::copy(own.begin() + range.first, own.begin() + range.last,
                  exchange.gradients() + range.first);
        sum.ready(bucket);
    }
    std::vector<double> step_sums(3, 0);
    step_sums[static_cast<std::size_t>(world().rank() % 3)] = world().rank() < 3 ? step + 1 : 0;
    std::vector<std::byte> payload(5, std::byte(world().is_root() ? step + 40 : 0));
    auto const squares = std::move(sum).finish(step_sums, payload);
    for (int i = 0; i < std::min(3, world().size()); ++i) {
        CHECK(step_sums[static_cast<std::size_t>(i)] == step + 1);
    }
    CHECK(payload == std::vector<std::byte>(5, std::byte(step + 40)));

    auto const expected = test::tree_order({0, replicas}, size, step, rounding);
    bool same = true;
    auto const compare = [&](Range range) {
        same = same && std::equal(expected.begin() + range.first, expected.begin() + range.last,
                                  exchange.gradients() + range.first);
    };
    if (everywhere) {
        compare({0, size});
    }
    for (auto const& range : partition.owned(world().rank())) {
        compare(range);
        for (auto at = range.first; at < range.last; ++at) {
            exchange.parameters()[at] = static_cast<float>(at + step);
        }
    }
    CHECK(same);
    REQUIRE(squares.size() == static_cast<std::size_t>(size / reduction_block));
    bool right = true;
    for (std::int64_t g = 0; g < size / reduction_block; ++g) {
        right = right && squares[static_cast<std::size_t>(g)] ==
                             block_squares(expected.data() + g * reduction_block);
    }
    CHECK(right);
    exchange.publish();
    if (!everywhere) {
        bool known = true;
        for (std::int64_t at = 0; at < size; ++at) {
            known = known && exchange.parameters()[at] == static_cast<float>(at + step);
        }
        CHECK(known);
    }
}

} // namespace

TEST_CASE("sums are in tree order however ranks are spread over hosts") {
    auto const node =
        subtrees_of_ranks(replicas, world().size())[static_cast<std::size_t>(world().rank())];
    for (bool const everywhere : {false, true}) {
        for (int const ranks_per_host : {0, 1, 2, 3}) {
            for (auto const route : {Route::direct, Route::halving}) {
                CAPTURE(everywhere, ranks_per_host, static_cast<int>(route));
                auto const exchange = make_tree_exchange(
                    world(), options_for(ranks_per_host, everywhere, Rounding::none, route));
                for (int step = 0; step < 4; ++step) {
                    one_step(*exchange, exchange->begin(), node, step, everywhere);
                }
            }
        }
    }
}

TEST_CASE("two exchanges under way at once keep their messages apart") {
    for (bool const everywhere : {false, true}) {
        for (int const ranks_per_host : {1, 2}) {
            CAPTURE(everywhere, ranks_per_host);
            auto const first = make_tree_exchange(world(), options_for(ranks_per_host, everywhere));
            auto const then = make_tree_exchange(world(), options_for(ranks_per_host, everywhere));
            auto const node = subtrees_of_ranks(
                replicas, world().size())[static_cast<std::size_t>(world().rank())];
            for (int step = 0; step < 4; ++step) {
                auto then_sum =
                    then->begin(); // its receives are posted before anything of the first travels
                one_step(*first, first->begin(), node, step, everywhere);
                one_step(*then, std::move(then_sum), node, 10 + step, everywhere);
            }
        }
    }
}

TEST_CASE("an exchange that is given up in a step leaves nothing behind") {
    auto const node =
        subtrees_of_ranks(replicas, world().size())[static_cast<std::size_t>(world().rank())];
    for (int step = 0; step < 3; ++step) {
        static_cast<void>(make_tree_exchange(world(), options_for(1, true))
                              ->begin()); // receives that nobody answers
        auto const exchange = make_tree_exchange(world(), options_for(1, true));
        one_step(*exchange, exchange->begin(), node, step, true);
    }
}

TEST_CASE("rounded sums are the same bits on any ranks and hosts") {
    auto const node =
        subtrees_of_ranks(replicas, world().size())[static_cast<std::size_t>(world().rank())];
    for (bool const everywhere : {false, true}) {
        for (int const ranks_per_host : {0, 1, 2, 3}) {
            for (auto const rounding : {Rounding::fp16, Rounding::bf16}) {
                CAPTURE(everywhere, ranks_per_host, static_cast<int>(rounding));
                auto const exchange =
                    make_tree_exchange(world(), options_for(ranks_per_host, everywhere, rounding));
                for (int step = 0; step < 3; ++step) {
                    one_step(*exchange, exchange->begin(), node, step, everywhere, rounding);
                }
            }
        }
    }
}

TEST_CASE("sixteen bits hold every value that was rounded to them") {
    for (auto const type : {Rounding::fp16, Rounding::bf16}) {
        bool same = true;
        for (std::uint32_t bits = 0; bits < 65536; ++bits) {
            auto const value = unpacked(static_cast<std::uint16_t>(bits), type);
            same = same && (std::isnan(value) ? std::isnan(unpacked(packed(value, type), type))
                                              : packed(value, type) == bits);
        }
        CHECK(same);
    }
    auto const half = [](float value) {
        return unpacked(packed(value, Rounding::fp16), Rounding::fp16);
    };
    CHECK(half(1 + 0x1p-11F) == 1); // ties to even
    CHECK(half(1 + 0x3p-11F) == 1 + 0x1p-9F);
    CHECK(half(0x1p-25F) == 0);
    CHECK(half(0x1.8p-25F) == 0x1p-24F);
    CHECK(half(65519) == 65504);
    CHECK(std::isinf(half(65520)));
    auto const brain = [](float value) {
        return unpacked(packed(value, Rounding::bf16), Rounding::bf16);
    };
    CHECK(brain(1 + 0x1p-8F) == 1);
    CHECK(brain(1 + 0x3p-8F) == 1 + 0x1p-6F);
    CHECK(std::isnan(brain(std::nanf(""))));
}

TEST_CASE("a rank that does not come is named within the time limit") {
    if (world().size() < 2) {
        return; // nobody to wait for
    }
    auto options = options_for(0, false);
    options.timeout_seconds = 1;
    auto const exchange = make_tree_exchange(world(), options);
    int const absent = world().size() - 1;
    std::string why;
    if (world().rank() != absent) {
        auto sum = exchange->begin();
        for (int bucket = 0; bucket < exchange->partition().buckets(); ++bucket) {
            sum.ready(bucket);
        }
        try {
            std::move(sum).finish({}, {});
        } catch (Error const& error) {
            why = error.what();
            CHECK(error.code() == ExitCode::rank_lost);
        }
        CHECK(why.find("rank " + std::to_string(absent)) != std::string::npos);
    }
    barrier(world()); // the absent one leaves with the others
}
