#include "lockstep/train/engine.hpp"

#include "lockstep/base/clock.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/base/hash.hpp"
#include "lockstep/base/random.hpp"
#include "lockstep/base/text.hpp"
#include "lockstep/comm/agree.hpp"
#include "lockstep/comm/collectives.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace lockstep::train {

namespace {

[[noreturn]] void throw_diverged(int rank, std::int64_t step, std::string const& what) {
    throw AgreedError(ExitCode::usage,
                      {what, "training has diverged",
                       "Lower optimizer.learning-rate, warm up longer, or set "
                       "optimizer.clip-norm; the last checkpoint is from before"},
                      rank, concat("rank ", rank, " in training at step ", step));
}

} // namespace

/// What all ranks tell each other in one small reduction: three values for each replica, non-zero
/// on the rank that hosts it only, then a signal number for each rank, then rank 0's clock.
struct Engine::Vote {
    std::vector<double> values;
    int replicas;
    int ranks;

    Vote(int replicas_, int ranks_)
        : values(static_cast<std::size_t>(3 * replicas_ + ranks_ + 1), 0), replicas(replicas_),
          ranks(ranks_) {}

    double& at(int index) { return values[static_cast<std::size_t>(index)]; }
    double& of_replica(int replica, int which) { return at(3 * replica + which); }
    double& signal(int rank) { return at(3 * replicas + rank); }
    double& minutes() { return values.back(); }

    double sum(int which) {
        std::vector<double> of_all;
        for (int replica = 0; replica < replicas; ++replica) {
            of_all.push_back(of_replica(replica, which));
        }
        return comm::tree_sum(of_all);
    }
};

Engine::Engine(Parts parts)
    : world_(parts.world), options_(parts.deck.optimizer),
      replicas_(static_cast<int>(parts.deck.run.replicas)), layout_(Layout::of(parts.model)),
      nodes_(comm::subtrees_of_ranks(replicas_, world_.size())),
      slices_(layout_.slices(world_.size())), arena_(parts.model, layout_, parts.device),
      buffers_(parts.model), reduction_(parts.carrier, nodes_, slices_, world_.rank()),
      optimizer_(options_, layout_, arena_.parameters(), {{reduction_.first(), reduction_.last()}}),
      local_({parts.model, parts.task, arena_, buffers_,
              nodes_[static_cast<std::size_t>(world_.rank())], parts.sample_shape, parts.device}),
      state_({layout_, arena_, buffers_, optimizer_, slices_, world_.rank()}),
      seed_(static_cast<std::uint64_t>(parts.deck.run.seed)) {}

Engine::Vote Engine::vote(StepInput const& input) const {
    Vote vote(replicas_, world_.size());
    auto const node = nodes_[static_cast<std::size_t>(world_.rank())];
    for (int replica = node.first; replica < node.first + node.count; ++replica) {
        auto const& result = local_.results()[static_cast<std::size_t>(replica - node.first)];
        vote.of_replica(replica, 0) = result.loss_sum;
        vote.of_replica(replica, 1) = result.weight;
        vote.of_replica(replica, 2) = static_cast<double>(result.correct);
    }
    vote.signal(world_.rank()) = input.signal;
    vote.minutes() = world_.is_root() && input.minutes_passed ? 1 : 0;
    comm::all_reduce(world_, std::span(vote.values), comm::Reduce::sum);
    return vote;
}

StepOutcome Engine::step(StepInput const& input) {
    StepOutcome outcome;
    auto const key = random_key(seed_, Stream::dropout, {static_cast<std::uint64_t>(input.step)});
    auto const partial = local_.run(input.loader, input.micro_batches, key);
    outcome.local = local_.times();

    Stopwatch watch;
    auto vote = this->vote(input);
    outcome.loss_sum = vote.sum(0);
    outcome.weight = vote.sum(1);
    outcome.correct = static_cast<std::int64_t>(vote.sum(2));
    outcome.minutes_passed = vote.minutes() != 0;
    for (int rank = 0; rank < world_.size(); ++rank) {
        if (vote.signal(rank) != 0) {
            outcome.signal = static_cast<int>(vote.signal(rank));
            outcome.signalled_rank = rank;
        }
    }
    for (int replica = 0; replica < replicas_; ++replica) {
        if (!std::isfinite(vote.of_replica(replica, 0))) {
            auto const host = std::find_if(nodes_.begin(), nodes_.end(), [&](comm::TreeNode node) {
                return replica < node.first + node.count;
            });
            throw_diverged(static_cast<int>(host - nodes_.begin()), input.step + 1,
                           concat("the loss of replica ", replica, " is not finite"));
        }
    }
    auto const gradients = reduction_.reduce(partial);
    outcome.communication_s = watch.restart();

    torch::NoGradGuard const no_grad;
    outcome.grad_norm = norm_of(gradients) / outcome.weight;
    if (!std::isfinite(outcome.grad_norm)) {
        throw_diverged(0, input.step + 1, "the gradient is not finite");
    }
    // Divided once, by the weight of all replicas, after the sum; the update does it in passing.
    UpdateStep update{.rate = input.rate, .step = input.step + 1, .divisor = outcome.weight};
    if (options_.clip_norm > 0 && outcome.grad_norm > options_.clip_norm) {
        update.divisor *= (outcome.grad_norm + 1e-6) / options_.clip_norm;
    }
    if (world_.size() > 1) {
        update.gather = [this](std::span<double> sums) {
            comm::all_reduce(world_, sums, comm::Reduce::sum);
        };
        auto const first = reduction_.first();
        partial.narrow(0, first, reduction_.last() - first).copy_(gradients);
    }
    optimizer_.update(arena_.parameters(), partial, update);
    outcome.update_s = watch.restart();

    reduction_.share(arena_.parameters());
    share_buffers();
    outcome.communication_s += watch.restart();
    return outcome;
}

double Engine::norm_of(torch::Tensor const& slice) const {
    auto const own = squares_by_grain(slice);
    std::vector<double> all(static_cast<std::size_t>(layout_.grains()), 0);
    std::copy(own.begin(), own.end(), all.begin() + reduction_.first() / grain);
    if (world_.size() > 1) {
        std::vector<std::int64_t> bounds;
        for (auto const bound : slices_) {
            bounds.push_back(bound / grain);
        }
        comm::all_gather_slices(world_, std::span(all), bounds);
    }
    return std::sqrt(comm::tree_sum(all));
}

void Engine::share_buffers() {
    if (world_.size() > 1) {
        auto const values = [](auto const& tensor, auto* data) {
            return std::span(data, static_cast<std::size_t>(tensor.numel()));
        };
        comm::broadcast(world_, values(buffers_.floats, buffers_.floats.mutable_data_ptr<float>()));
        comm::broadcast(
            world_, values(buffers_.integers, buffers_.integers.mutable_data_ptr<std::int64_t>()));
    }
    buffers_.restore();
}

AveragedWeights Engine::averaged_weights() {
    if (!optimizer_.averages()) {
        return {};
    }
    AveragedWeights averaged(arena_.parameters());
    optimizer_.write_average(arena_.parameters());
    reduction_.share(arena_.parameters());
    return averaged;
}

void Engine::check_replicas(std::int64_t step) const {
    auto const host = arena_.parameters().cpu();
    auto const hash = hash64(std::span(static_cast<std::byte const*>(host.const_data_ptr()),
                                       static_cast<std::size_t>(host.nbytes())));
    auto const hashes = comm::all_gather(world_, hash);
    std::map<std::uint64_t, int> votes;
    for (auto const each : hashes) {
        ++votes[each];
    }
    if (votes.size() == 1) {
        return;
    }
    auto const right =
        std::max_element(votes.begin(), votes.end(),
                         [](auto const& a, auto const& b) { return a.second < b.second; });
    auto const odd =
        std::find_if(hashes.begin(), hashes.end(), [&](auto each) { return each != right->first; });
    auto const rank = static_cast<int>(odd - hashes.begin());
    throw AgreedError(ExitCode::rank_lost,
                      {concat("the replica of rank ", rank, " differs from the others"),
                       "its memory or processor is faulty, or the hosts' processors differ",
                       "Restart from the last checkpoint, without that host if it happens again"},
                      rank, concat("rank ", rank, " in training at step ", step));
}

double memory_needed(double parameters, config::Optimizer const& optimizer, int replicas,
                     int ranks) {
    int levels = 1;
    for (int leaves = replicas; leaves > 1; leaves = (leaves + 1) / 2) {
        ++levels;
    }
    auto const states = static_cast<double>(state_names(optimizer).size());
    int const kept = optimizer.ema > 0 ? 1 : 0; // while averaged weights are measured
    return sizeof(float) * parameters * (2 + levels + kept + (ranks > 1 ? 1 : 0) + states / ranks);
}

} // namespace lockstep::train
