#include "step/divergence.hpp"

#include "base/exact_sum.hpp"
#include "base/text.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"

#include <algorithm>
#include <cmath>

namespace lockstep::train {

namespace {

[[noreturn]] void throw_diverged(comm::Communicator const& world, int rank, std::int64_t step,
                                 std::string const& what) {
    throw Diverged(ExitCode::usage,
                   {what, "training has diverged",
                    "Lower optimizer.learning-rate, warm up longer, or set optimizer.clip-norm. "
                    "The last checkpoint is from before this step"},
                   rank, concat(comm::place_of_rank(world, rank), " in training at step ", step));
}

} // namespace

void throw_bad_loss(comm::Communicator const& world, std::vector<comm::TreeNode> const& nodes,
                    std::vector<ReplicaResult> const& results, std::int64_t step) {
    auto const bad = std::find_if(results.begin(), results.end(), [](auto const& result) {
        return !exact_sum::is_finite(result.loss_sum);
    });
    auto const own = nodes[static_cast<std::size_t>(world.rank())];
    auto const replicas = nodes.back().first + nodes.back().count;
    auto const replica = comm::all_reduce(
        world,
        bad == results.end() ? replicas : own.first + static_cast<int>(bad - results.begin()),
        comm::Reduce::minimum);
    auto const its = std::find_if(nodes.begin(), nodes.end(), [&](comm::TreeNode node) {
        return replica < node.first + node.count;
    });
    throw_diverged(world, static_cast<int>(its - nodes.begin()), step,
                   concat("the loss of replica ", replica, " is not finite"));
}

/// The sum of a reduction block lies where its owner's gradient lay; the other ranks still have
/// their own, unless sums went everywhere.
void throw_bad_gradient(comm::Communicator const& world, Layout const& layout,
                        SummedGradients const& summed, std::int64_t step) {
    auto const& [exchange, squares, gradients] = summed;
    auto const bad = std::find_if(squares.begin(), squares.end(),
                                  [](double value) { return !std::isfinite(value); });
    bool const is_in_one = bad != squares.end(); // else no block alone is too large
    auto const first = is_in_one ? (bad - squares.begin()) * reduction_block : 0;
    auto const* const own = gradients.cpu().const_data_ptr<float>() + first;
    auto const* const found =
        std::find_if(own, own + reduction_block, [](float value) { return !std::isfinite(value); });
    auto const place = found < own + reduction_block ? first + (found - own) : -1;
    auto const places = comm::all_gather(world, place);
    auto const owned = exchange.partition().owned(world.rank());
    bool const is_sum =
        exchange.sums_everywhere() || std::any_of(owned.begin(), owned.end(), [&](Range range) {
            return range.first <= first && first < range.last;
        });
    auto const sums = comm::all_gather(world, is_sum ? 1 : 0);
    int rank = -1;
    int owner = 0;
    for (int each = 0; each < world.size(); ++each) {
        auto const at = static_cast<std::size_t>(each);
        if (sums[at] != 0) {
            owner = each;
        } else if (rank < 0 && places[at] >= 0) {
            rank = each;
        }
    }
    rank = rank < 0 ? owner : rank; // no other has it
    auto const at = std::max<std::int64_t>(places[static_cast<std::size_t>(rank)], first);
    auto const entry = std::find_if(layout.entries.rbegin(), layout.entries.rend(),
                                    [&](ParameterRange const& each) { return each.first <= at; });
    throw_diverged(
        world, rank, step,
        concat("the gradient of parameter ", entry->name, " is not finite, although the loss is"));
}

} // namespace lockstep::train
