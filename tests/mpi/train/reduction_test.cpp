#include "lockstep/comm/collectives.hpp"
#include "lockstep/train/layout.hpp"
#include "lockstep/train/reduction.hpp"

#include "catch.hpp"
#include "world.hpp"

using namespace lockstep;
using namespace lockstep::train;
using lockstep::test::world;

namespace {

constexpr int replicas = 8;
constexpr std::int64_t grains = 5;
constexpr std::int64_t size = grains * grain;

/// A replica's gradients, the same on whichever rank they are made; of very unlike sizes, so that
/// the order of a sum shows in its bits.
torch::Tensor gradients_of(int replica) {
    torch::manual_seed(static_cast<std::uint64_t>(replica));
    return torch::randn({size}) * std::pow(10.0, replica % 4);
}

/// The sum below a node, by the tree.
torch::Tensor sum_below(comm::TreeNode node) {
    std::vector<torch::Tensor> all;
    for (int replica = 0; replica < replicas; ++replica) {
        all.push_back(gradients_of(replica));
    }
    comm::sum_in_tree_order(
        node, [](comm::TreeNode) { return false; },
        [&](int into, int from) {
            all[static_cast<std::size_t>(into)].add_(all[static_cast<std::size_t>(from)]);
        });
    return all[static_cast<std::size_t>(node.first)];
}

std::vector<std::int64_t> bounds_of(int ranks) {
    std::vector<std::int64_t> bounds;
    for (std::int64_t rank = 0; rank <= ranks; ++rank) {
        bounds.push_back(grains * rank / ranks * grain);
    }
    return bounds;
}

} // namespace

TEST_CASE("the sum over replicas has the tree's bits on any number of ranks") {
    auto const nodes = comm::subtrees_of_ranks(replicas, world().size());
    auto const carrier = mpi_carrier(world());
    OrderedReduction reduction(*carrier, nodes, bounds_of(world().size()), world().rank());
    auto const own = sum_below(nodes[static_cast<std::size_t>(world().rank())]);
    auto const slice = reduction.reduce(own);
    auto const expected = sum_below({0, replicas});
    auto const count = reduction.last() - reduction.first();
    CHECK(torch::equal(slice, expected.narrow(0, reduction.first(), count)));

    // Left to right is another sum: the test sees the order.
    auto naive = gradients_of(0);
    for (int replica = 1; replica < replicas; ++replica) {
        naive.add_(gradients_of(replica));
    }
    CHECK_FALSE(torch::equal(naive, expected));
}

TEST_CASE("all slices become known to all ranks") {
    auto const carrier = mpi_carrier(world());
    auto const bounds = bounds_of(world().size());
    OrderedReduction reduction(*carrier, comm::subtrees_of_ranks(replicas, world().size()), bounds,
                               world().rank());
    auto const whole = torch::full({size}, -1.0F);
    whole.narrow(0, reduction.first(), reduction.last() - reduction.first())
        .copy_(torch::arange(reduction.first(), reduction.last(), torch::kFloat32));
    reduction.share(whole);
    CHECK(torch::equal(whole, torch::arange(0, size, torch::kFloat32)));
}
