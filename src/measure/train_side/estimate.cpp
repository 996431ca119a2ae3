#include "measure/train_side/estimate.hpp"

#include "base/gpus.hpp"
#include "base/host_facts.hpp"
#include "base/memory.hpp"
#include "base/notice.hpp"
#include "base/text.hpp"
#include "comm/agree.hpp"
#include "comm/collective_library.hpp"
#include "comm/collectives.hpp"
#include "comm/scaling_model.hpp"
#include "device/precision.hpp"
#include "measure/allreduce_trial.hpp"
#include "measure/measurement.hpp"
#include "measure/train_side/estimate_recipe.hpp"
#include "measure/train_side/estimate_steps.hpp"
#include "train/dry_run.hpp"

#include <algorithm>
#include <optional>

namespace lockstep::measure {

using comm::Communicator;

namespace {

/// The mean over all ranks: one that waits less has computed longer.
///
/// Collective  over `world`
comm::StepParts mean_over(Communicator const& world, comm::StepParts parts) {
    for (auto* const value : {&parts.compute, &parts.backward, &parts.sum, &parts.update,
                              &parts.imbalance, &parts.rest}) {
        *value = comm::all_reduce(world, *value, comm::Reduce::sum) / world.size();
    }
    return parts;
}

/// What the ranks of a host do to each other, all hosts at once, each for itself.
///
/// Collective  over `world`
/// Returns     the mean over this rank's host
comm::StepParts together_on_hosts(Communicator const& world, EstimateRecipe const& recipe,
                                  std::int64_t steps) {
    auto const host = world.split_by_host();
    train::DryRun dry_run(host, recipe.a_replica_each(host.size()));
    return mean_over(host, median_step_of_hosts(world, dry_run, steps));
}

/// Where hosts were measured, by sums over one rank of each (`firsts`), of few bytes and of about
/// as many as gradients have; else as given, or as assumed.
///
/// Collective  over `world`
comm::NetworkModel network_of(Communicator const& world, comm::Topology const& topology,
                              Communicator const& firsts, double arena_bytes,
                              EstimateOptions const& options, std::string& source) {
    constexpr std::uint64_t small = std::uint64_t{4} << 10;
    auto const large = std::clamp(static_cast<std::uint64_t>(arena_bytes), std::uint64_t{256} << 10,
                                  std::uint64_t{16} << 20);
    std::vector<double> seconds{0, 0};
    if (topology.hosts.size() > 1 && topology.local_rank == 0) {
        seconds[0] = seconds_of_successive_sums(firsts, small, 20);
        seconds[1] = seconds_of_successive_sums(firsts, large, 5);
    }
    comm::broadcast(world, std::span(seconds));
    auto const hosts = static_cast<int>(topology.hosts.size());
    constexpr double bits = 8;
    comm::NetworkModel network{20e-6, 25e9 / bits};
    source = "an assumption";
    if (hosts > 1) {
        network = comm::NetworkModel::of_sums(hosts, static_cast<double>(small), seconds[0],
                                              static_cast<double>(large), seconds[1]);
        source = concat("measured between ", hosts, " hosts");
    }
    if (options.gbit > 0 || options.latency_us > 0) {
        network.bytes_per_s = options.gbit > 0 ? options.gbit * 1e9 / bits : network.bytes_per_s;
        network.latency_s = options.latency_us > 0 ? options.latency_us * 1e-6 : network.latency_s;
        source = "as given";
    }
    return network;
}

/// Forward and backward of each micro-batch, and forward once more where it is computed again.
int lent_passes(config::Deck const& deck) {
    auto const passes = deck.precision.gradient_checkpointing ? 3 : 2;
    return deck.optimizer.update == "fully-sharded"
               ? passes * static_cast<int>(deck.optimizer.accumulate)
               : 0;
}

/// Powers of two up to the most, and what was measured.
std::vector<int> rank_counts(std::int64_t max, int measured) {
    std::vector<int> counts;
    for (std::int64_t ranks = 1; ranks <= max; ranks *= 2) {
        counts.push_back(static_cast<int>(ranks));
    }
    if (measured <= max) {
        counts.push_back(measured);
    }
    std::sort(counts.begin(), counts.end());
    counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
    return counts;
}

/// Bytes that one rank copies in memory, a second.
double copy_rate(Communicator const& world) {
    constexpr std::uint64_t bytes = std::uint64_t{16} << 20;
    return static_cast<double>(bytes) / median(measure_allreduce(world, "copy", bytes, 5).seconds);
}

/// Bytes that this rank can have on its device, with what it has already.
double memory_of_rank(Communicator const& world, int local_size) {
    if (world.device() == "cpu") {
        return static_cast<double>(available_memory()) / local_size +
               static_cast<double>(resident_memory());
    }
    auto const listing = list_gpus();
    auto const index = std::stoul(world.device().substr(world.device().find(':') + 1));
    return index < listing.gpus.size() ? static_cast<double>(listing.gpus[index].memory) : 0;
}

/// As many as were started on this one; for a rank all alone, as many as there are devices or cores
/// for.
int ranks_of_host(Communicator const& world, config::Run const& run,
                  comm::Topology const& topology) {
    if (world.size() > 1) {
        return topology.local_size;
    }
    auto const devices = static_cast<int>(list_gpus().gpus.size());
    auto const by_cores = host_cores() / static_cast<int>(run.threads);
    return std::max(world.device() == "cpu" ? by_cores : devices, 1);
}

} // namespace

void estimate(Communicator const& world, config::Deck const& deck, EstimateOptions const& options) {
    auto const topology = comm::Topology::discover(world);
    // What is free before anything is taken.
    auto const available =
        comm::all_reduce(world, memory_of_rank(world, topology.local_size), comm::Reduce::minimum);
    comm::ScalingInputs inputs;
    train::DryRunSize size;
    std::optional<Together> measured;
    std::vector<BatchTrial> batches;
    auto const recipe = recipe_on_all_ranks(world, topology, deck);
    if (auto const slow =
            train::slow_precision_text(recipe.plan.deck.precision, world.device() == "cpu");
        world.is_root() && !slow.empty()) {
        notice(slow);
    }
    // One rank of each host at once: the slowest host, and what hosts share, are in it.
    auto const firsts = world.split(topology.local_rank == 0 ? 0 : 1);
    comm::agree(world, "measuring a step alone", [&] {
        if (topology.local_rank == 0) {
            inputs.alone = mean_over(firsts, measure_alone(firsts, recipe.one_replica(recipe.batch),
                                                           options.steps, &size));
        }
    });
    if (world.size() > 1) {
        train::DryRun dry_run(world, recipe.a_replica_each(world.size()));
        measured = Together{mean_over(world, median_step(dry_run, options.steps)), world.size(),
                            topology.local_size};
    }
    inputs.measured = topology.local_size;
    if (measured && topology.hosts.size() == 1) {
        inputs.together = measured->parts;
    } else if (world.size() > static_cast<int>(topology.hosts.size())) {
        inputs.together = together_on_hosts(world, recipe, options.steps);
    }
    inputs.copy_per_s = copy_rate(world);
    std::string source;
    inputs.between = network_of(world, topology, firsts, size.arena_bytes, options, source);
    inputs.ranks_per_host = options.per_host > 0 ? static_cast<int>(options.per_host)
                                                 : ranks_of_host(world, deck.run, topology);
    inputs.sharded = deck.optimizer.update != "replicated";
    inputs.overlaps = world.device() != "cpu";
    inputs.follows = size.follows;
    inputs.lent_passes = lent_passes(deck);
    inputs.ranks_are_hosts = inputs.overlaps && !comm::collective_libraries().empty();
    auto const& compression = deck.communication.compression;
    inputs.carried = compression == "fp16" || compression == "bf16" ? 0.5 : 1;
    comm::agree(world, "predicting", [&] {
        if (!world.is_root()) {
            return;
        }
        inputs.replicas = recipe.fixed_replicas();
        inputs.load =
            recipe.loads(rank_counts(options.max_ranks, 1), options.steps, inputs.alone.compute);
        inputs.arena_bytes = size.arena_bytes;
        inputs.buckets = size.buckets;
        inputs.batch = size.samples_per_step;
        EstimateTable const printer(options);
        printer.start(recipe.plan);
        printer.basis(inputs, source, measured);
        printer.head();
        auto const max =
            inputs.replicas > 0 ? std::min(options.max_ranks, inputs.replicas) : options.max_ranks;
        for (int const ranks : rank_counts(max, world.size())) {
            try {
                printer.row(comm::predict(inputs, ranks), recipe.step_on(ranks).steps);
            } catch (Error const& refused) { // as train would
                printer.refused(ranks, refused);
            }
        }
        if (options.batches.empty()) {
            return;
        }
        auto const replicas = static_cast<int>(recipe.plan.deck.run.replicas);
        auto const here = comm::predict(inputs, world.size());
        auto const other_s = here.step_s - whole(inputs.alone);
        for (auto const total : options.batches) {
            batches.push_back(try_batch(recipe.one_replica(recipe.batch), total, replicas,
                                        std::max(other_s, 0.0)));
        }
        if (options.json) {
            print_json(batches);
        } else {
            print_batches(batches, replicas, available);
        }
    });
}

} // namespace lockstep::measure
