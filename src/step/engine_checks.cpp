// What the engine looks at in every step, or when asked: whether training still goes well on all
// ranks.

#include "base/exact_sum.hpp"
#include "base/hash.hpp"
#include "base/text.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "step/engine.hpp"

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

/// Throws for the first replica whose loss is not finite.
void Engine::throw_bad_loss(std::int64_t step) const {
    auto const& results = local_.results();
    auto const bad = std::find_if(results.begin(), results.end(), [](auto const& result) {
        return !exact_sum::is_finite(result.loss_sum);
    });
    auto const own = own_node();
    auto const replica = comm::all_reduce(
        world_,
        bad == results.end() ? replicas_ : own.first + static_cast<int>(bad - results.begin()),
        comm::Reduce::minimum);
    auto const host = std::find_if(nodes_.begin(), nodes_.end(), [&](comm::TreeNode node) {
        return replica < node.first + node.count;
    });
    throw_diverged(world_, static_cast<int>(host - nodes_.begin()), step,
                   concat("the loss of replica ", replica, " is not finite"));
}

/// Looks where a gradient that is not finite came from. The sum of a reduction block lies where its
/// owner's gradient lay; the other ranks still have their own, unless sums went everywhere.
void Engine::throw_not_finite(std::int64_t step) const {
    auto const squares = exchange_->squares();
    auto const bad = std::find_if(squares.begin(), squares.end(),
                                  [](double value) { return !std::isfinite(value); });
    bool const is_in_one = bad != squares.end(); // else no block alone is too large
    auto const first = is_in_one ? (bad - squares.begin()) * reduction_block : 0;
    auto const* const own = local_.gradients().cpu().const_data_ptr<float>() + first;
    auto const* const found =
        std::find_if(own, own + reduction_block, [](float value) { return !std::isfinite(value); });
    auto const place = found < own + reduction_block ? first + (found - own) : -1;
    auto const places = comm::all_gather(world_, place);
    auto const owned = exchange_->partition().owned(world_.rank());
    bool const is_sum =
        exchange_->sums_everywhere() || std::any_of(owned.begin(), owned.end(), [&](Range range) {
            return range.first <= first && first < range.last;
        });
    auto const sums = comm::all_gather(world_, is_sum ? 1 : 0);
    int rank = -1;
    int owner = 0;
    for (int each = 0; each < world_.size(); ++each) {
        auto const at = static_cast<std::size_t>(each);
        if (sums[at] != 0) {
            owner = each;
        } else if (rank < 0 && places[at] >= 0) {
            rank = each;
        }
    }
    rank = rank < 0 ? owner : rank; // no other has it
    auto const at = std::max<std::int64_t>(places[static_cast<std::size_t>(rank)], first);
    auto const entry = std::find_if(layout_.entries.rbegin(), layout_.entries.rend(),
                                    [&](Entry const& each) { return each.first <= at; });
    throw_diverged(
        world_, rank, step,
        concat("the gradient of parameter ", entry->name, " is not finite, although the loss is"));
}

/// Refuses a model that changes its buffers; none that our rules know does: they refuse batch norm.
void Engine::require_same_buffers(std::uint64_t before, std::int64_t step) const {
    if (hash64(buffers_.bytes()) != before) {
        throw AgreedError(
            ExitCode::usage,
            {"the model has changed its buffers, which privacy.noise does not allow",
             "no noise is added to buffers, so the buffers would reveal training samples",
             "Use a model that does not change its buffers in training"},
            0, concat(comm::place_of_rank(world_, 0), " in training at step ", step));
    }
}

/// Entry by entry, since what lies between them is nobody's, and last the buffers.
std::vector<std::span<std::byte const>> Engine::weights_of(torch::Tensor const& parameters) const {
    auto const values = std::as_bytes(
        std::span(parameters.const_data_ptr<float>(), static_cast<std::size_t>(layout_.size)));
    std::vector<std::span<std::byte const>> parts;
    for (auto const& entry : layout_.entries) {
        parts.push_back(values.subspan(static_cast<std::size_t>(entry.first) * sizeof(float),
                                       static_cast<std::size_t>(entry.count) * sizeof(float)));
    }
    parts.push_back(buffers_.bytes());
    return parts;
}

std::vector<std::uint64_t> Engine::hashes_of_ranks() const {
    auto const parameters = arena_.parameters().cpu();
    Hasher hasher;
    for (auto const& part : weights_of(parameters)) {
        hasher.add(part);
    }
    return comm::all_gather(world_, hasher.digest());
}

Engine::WeightHash Engine::hash_weights() const {
    auto const hashes = hashes_of_ranks();
    auto const odd =
        std::find_if(hashes.begin(), hashes.end(), [&](auto each) { return each != hashes[0]; });
    if (odd == hashes.end()) {
        return {hashes[0], {}};
    }
    auto const rank = static_cast<std::size_t>(odd - hashes.begin());
    auto const parameters = arena_.parameters().cpu();
    std::string where = "the buffers";
    auto const parts = weights_of(parameters);
    for (std::size_t entry = 0; entry < layout_.entries.size(); ++entry) {
        auto const of_ranks = comm::all_gather(world_, hash64(parts[entry]));
        if (of_ranks[rank] != of_ranks[0]) {
            where = layout_.entries[entry].name;
            break;
        }
    }
    return {hashes[0], concat("replica ", nodes_[rank].first, " on rank ", rank,
                              " differ from replica 0's, first in ", where)};
}

std::string Engine::memory_text() const {
    auto const place = [](char const* what, void const* at) {
        auto const address = reinterpret_cast<std::uintptr_t>(at);
        return concat(what, " at ", at, ", aligned to ", bytes_text(address & -address));
    };
    return concat(place("parameters", arena_.parameters().const_data_ptr()), "; ",
                  place("gradients", local_.gradients().const_data_ptr()));
}

trace::HeldMemory Engine::held_memory() const {
    trace::HeldMemory held{
        .parameters = static_cast<std::int64_t>(arena_.parameters().nbytes()),
        .gradients = static_cast<std::int64_t>(local_.gradients().nbytes()),
        .optimizer = 0,
        .on_device = !arena_.parameters().is_cpu(),
    };
    for (std::size_t at = 0; at < optimizer_.state_names().size(); ++at) {
        held.optimizer += static_cast<std::int64_t>(optimizer_.state(at).nbytes());
    }
    return held;
}

void Engine::check_replicas(std::int64_t step) const {
    auto const hashes = hashes_of_ranks();
    std::map<std::uint64_t, int> replicas_with;
    for (auto const each : hashes) {
        ++replicas_with[each];
    }
    if (replicas_with.size() == 1) {
        return;
    }
    auto const right =
        std::max_element(replicas_with.begin(), replicas_with.end(),
                         [](auto const& a, auto const& b) { return a.second < b.second; });
    auto const odd =
        std::find_if(hashes.begin(), hashes.end(), [&](auto each) { return each != right->first; });
    auto const rank = static_cast<int>(odd - hashes.begin());
    bool const max_agree = 2 * right->second > world_.size();
    throw AgreedError(ExitCode::rank_lost,
                      {max_agree ? concat("the replica of rank ", rank, " differs from the others")
                                 : std::string("the ranks' replicas differ, and no majority "
                                               "agrees, so it is unknown which replicas are right"),
                       "a rank's memory or processor is faulty, or the hosts' processors differ",
                       max_agree ? "Start the run again from the last checkpoint. If replicas "
                                   "differ again, exclude the host of that rank"
                                 : "Start the run again from the last checkpoint. If replicas "
                                   "differ again, test the memory and processors of the hosts"},
                      rank,
                      concat(comm::place_of_rank(world_, rank), " in training at step ", step));
}

} // namespace lockstep::train
