#include "measure/train_side/estimate_recipe.hpp"

#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "lockstep/base/error.hpp"
#include "measure/train_side/estimate_steps.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <span>

namespace lockstep::measure {

namespace {

/// Seconds of compute by batch: on the lines between what was measured, and in proportion to the
/// smallest below it.
double compute_of(std::map<std::int64_t, double> const& measured, double batch) {
    auto const above = measured.lower_bound(static_cast<std::int64_t>(batch));
    if (above == measured.begin()) {
        return above->second * batch / static_cast<double>(above->first);
    }
    auto const below = std::prev(above);
    if (above == measured.end()) {
        return below->second * batch / static_cast<double>(below->first);
    }
    auto const share = (batch - static_cast<double>(below->first)) /
                       static_cast<double>(above->first - below->first);
    return below->second + share * (above->second - below->second);
}

} // namespace

std::int64_t EstimateRecipe::fixed_replicas() const {
    return deck.run.replicas > 0 || !plan.newest.empty() ? plan.deck.run.replicas : 0;
}

config::Deck EstimateRecipe::with_replicas(int replicas, std::int64_t of_batch) const {
    auto changed = deck;
    changed.data.batch = of_batch;
    changed.data.global_batch = 0;
    changed.run.replicas = replicas;
    changed.run.mode = "auto";
    return changed;
}

std::function<comm::StepLoad(int ranks)>
EstimateRecipe::loads(std::vector<int> const& counts, std::int64_t steps, double compute) const {
    std::map<std::int64_t, double> measured{{batch, compute}};
    for (int const ranks : counts) {
        if (deck.data.global_batch == 0 || fixed_replicas() > 0) {
            break; // one batch for all
        }
        try {
            measured.emplace(step_on(ranks).batch, -1);
        } catch (Error const&) {
            continue; // train would refuse so many
        }
    }
    auto const smallest = measured.begin()->first;
    auto const largest = measured.rbegin()->first;
    std::erase_if(measured, [&](auto const& each) {
        return each.second < 0 && each.first != smallest && each.first != largest;
    });
    for (auto& [of_batch, seconds] : measured) {
        if (seconds < 0) {
            auto const self = comm::Communicator::self();
            seconds = measure_alone(self, one_replica(of_batch), steps).compute;
        }
    }
    return [recipe = *this, measured, compute](int ranks) {
        auto const step = recipe.step_on(ranks);
        auto const micro_batches = static_cast<double>(recipe.deck.optimizer.accumulate);
        auto const own =
            static_cast<double>(step.samples) / static_cast<double>(step.replicas) / micro_batches;
        return comm::StepLoad{step.replicas, step.samples, compute_of(measured, own) / compute};
    };
}

EstimateRecipe recipe_on_all_ranks(comm::Communicator const& world, comm::Topology const& topology,
                                   config::Deck const& deck) {
    EstimateRecipe recipe{.deck = deck, .plan = {}};
    std::vector<train::RankPlace> places;
    for (auto const& host : topology.host_of_rank) {
        places.push_back({host, world.device()});
    }
    comm::agree(world, "planning", [&] {
        if (world.is_root()) {
            recipe.plan = train::plan_run(deck, places);
            recipe.batch = recipe.plan.deck.data.batch;
        }
    });
    comm::broadcast(world, std::span(&recipe.batch, 1));
    return recipe;
}

comm::StepParts measure_alone(comm::Communicator const& beside, config::Deck const& deck,
                              std::int64_t steps, train::DryRunSize* size) {
    auto const self = comm::Communicator::self();
    std::optional<train::DryRun> dry_run;
    comm::agree(beside, "opening the data and the model", [&] { dry_run.emplace(self, deck); });
    if (size != nullptr) {
        *size = dry_run->size();
    }
    return median_step_of_hosts(beside, *dry_run, steps);
}

} // namespace lockstep::measure
