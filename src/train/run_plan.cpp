#include "lockstep/train/run_plan.hpp"

#include "lockstep/base/memory.hpp"
#include "lockstep/checkpoint/store.hpp"
#include "lockstep/nn/policy.hpp"
#include "lockstep/train/arena.hpp"
#include "lockstep/train/engine.hpp"

#include <algorithm>

#include "bucket_elements.hpp"
#include "opening.hpp"
#include "rollout_plan.hpp"

namespace lockstep::train {

namespace {

/// Bytes of the batches that a rank's loader makes ahead; of samples with a number of rows each,
/// one row.
double batch_bytes(config::Data const& data, data::Dataset const& set) {
    double sample = 0;
    for (auto const* fields : {&set.inputs(), &set.targets()}) {
        for (auto const& field : *fields) {
            auto const unit = field.whole ? sizeof(std::int64_t) : sizeof(float);
            sample += static_cast<double>(h5::elements(field.shape) * unit);
        }
    }
    return sample * static_cast<double>(data.batch * (data.prefetch + 1));
}

/// As `memory_needed` counts, part by part.
PlannedMemory memory_of(RunPlan const& plan, double size, double owned, int replicas,
                        data::Dataset const* set) {
    auto const& optimizer = plan.deck.optimizer;
    auto const ranks = static_cast<int>(plan.ranks.size());
    bool const replicated = optimizer.update == "replicated";
    auto const states = static_cast<double>(state_names(optimizer).size());
    PlannedMemory memory;
    memory.parameters = 2 * size * sizeof(float);
    memory.exchange = ranks > 1 ? size * sizeof(float) : 0;
    memory.optimizer = (replicated ? size : owned) * states * sizeof(float);
    memory.gradients = memory_needed(size, optimizer, replicas, ranks) - memory.parameters -
                       memory.exchange - size * states * sizeof(float) / (replicated ? 1 : ranks);
    memory.batches = set == nullptr ? 0 : batch_bytes(plan.deck.data, *set);
    return memory;
}

double counted(std::vector<Range> const& ranges) {
    double sum = 0;
    for (auto const& range : ranges) {
        sum += static_cast<double>(range.count());
    }
    return sum;
}

void plan_steps(RunPlan& plan, Workload const& work) {
    std::int64_t most_steps = 0;
    if (work.environment) {
        auto const* const policy = dynamic_cast<nn::Policy const*>(work.model.get());
        RolloutPlan const rollouts(plan.deck, task::ppo_options(plan.deck.task),
                                   policy != nullptr && policy->state_size() > 0);
        plan.samples = rollouts.transitions() * plan.deck.run.replicas;
        plan.samples_per_step = rollouts.samples_in_step();
        plan.steps_per_epoch = rollouts.steps_per_epoch();
        most_steps = rollouts.most_steps(work.samples.spaces->longest_episode);
    } else {
        auto const steps = train_plan(plan.deck, *work.train);
        plan.samples = work.train->samples();
        plan.samples_per_step = steps.samples_in_step(0);
        plan.steps_per_epoch = steps.steps_per_epoch();
    }
    plan.steps = total_steps(plan.deck.train, plan.steps_per_epoch, most_steps);
}

} // namespace

RunPlan plan_run(config::Deck deck, std::vector<RankPlace> const& places) {
    RunPlan plan;
    auto const ranks = static_cast<int>(places.size());
    settle_new(deck, ranks);
    plan.deck = deck;
    auto const work = open_workload(deck, [](double parameters) {
        require_memory(parameters * sizeof(float), available_memory());
    });
    auto const layout = Layout::of(*work.model);
    comm::Partition const partition(layout.size, ranks,
                                    bucket_elements(deck.communication.first_bucket_mb),
                                    bucket_elements(deck.communication.bucket_mb));
    auto const nodes = comm::subtrees_of_ranks(static_cast<int>(deck.run.replicas), ranks);
    int most_replicas = 1;
    double most_owned = 0;
    for (int rank = 0; rank < ranks; ++rank) {
        auto const at = static_cast<std::size_t>(rank);
        auto const owned = counted(partition.owned(rank));
        plan.ranks.push_back({places[at], nodes[at], owned});
        most_replicas = std::max(most_replicas, nodes[at].count);
        most_owned = std::max(most_owned, owned);
    }
    for (int bucket = 0; bucket < partition.buckets(); ++bucket) {
        plan.buckets.push_back(static_cast<double>(partition.bucket(bucket).count()) *
                               sizeof(float));
    }
    for (auto const& entry : layout.entries) {
        plan.frozen += entry.trained ? 0 : static_cast<double>(entry.count);
    }
    plan.parameters = static_cast<double>(layout.parameters);
    plan.tensors = layout.entries.size();
    auto const size = static_cast<double>(layout.size);
    plan.memory = memory_of(plan, size, most_owned, most_replicas, work.train.get());
    auto const arrays = 1 + static_cast<double>(state_names(deck.optimizer).size());
    plan.state_bytes =
        size * sizeof(float) * arrays + static_cast<double>(Buffers(*work.model).bytes().size());
    plan_steps(plan, work);
    checkpoint::Store const store(std::filesystem::path(deck.run.directory) / "checkpoints", 1);
    auto const found = store.list();
    if (!found.empty() && deck.checkpoint.resume == "auto") {
        plan.newest = found.front().path.string();
    }
    return plan;
}

} // namespace lockstep::train
