#include "comm/scaling_model.hpp"

#include "comm/host_schedule.hpp"
#include "comm/link_model.hpp"
#include "comm/replica_tree.hpp"

#include <algorithm>
#include <bit>

namespace lockstep::comm {

namespace {

/// A value that is `one` with one rank on a host and `measured` with so many, on the line between
/// and beyond.
double on_line(double one, double measured, int measured_ranks, int ranks) {
    if (measured_ranks <= 1) {
        return one;
    }
    return one + (measured - one) * (ranks - 1) / (measured_ranks - 1);
}

/// Share of an array that a rank reads from others: all but its own shard.
double of_others(int ranks) {
    return static_cast<double>(ranks - 1) / ranks;
}

double sum_within_host(ScalingInputs const& inputs, int ranks) {
    if (ranks == 1) {
        return 0;
    }
    if (inputs.measured <= 1) {
        return inputs.copy_per_s > 0 ? inputs.arena_bytes * of_others(ranks) / inputs.copy_per_s
                                     : 0;
    }
    auto const saturated = std::max(1.0, static_cast<double>(ranks) / inputs.measured);
    return inputs.together.sum * of_others(ranks) / of_others(inputs.measured) * saturated;
}

double update_on(ScalingInputs const& inputs, int ranks, int here) {
    auto const shares = inputs.sharded ? ranks : 1;
    auto const alone = inputs.alone.update;
    auto const measured_shares = inputs.sharded ? inputs.measured : 1;
    auto const slowdown =
        alone > 0 ? std::max(on_line(1, inputs.together.update * measured_shares / alone,
                                     inputs.measured, here),
                             here > inputs.measured ? 1.0 : 0.0)
                  : 1;
    return alone / shares * slowdown;
}

/// Latencies of the all-reduce of the step's sums, a binomial tree up and down.
int latencies_of_sums(int hosts) {
    return 2 * static_cast<int>(std::bit_width(static_cast<unsigned>(hosts - 1)));
}

/// The number of a rank's shards that rank 0 sends to other hosts than its own.
double shards_to_other_hosts(HostSchedule const& schedule, int ranks_per_host) {
    double shards = 0;
    for (auto const& stage : schedule.stages()) {
        for (auto const& message : stage.sends) {
            shards +=
                message.partner >= ranks_per_host ? static_cast<double>(message.entries.size()) : 0;
        }
    }
    return shards;
}

/// Replicas of the rank that has the most.
int max_over(std::vector<TreeNode> const& nodes) {
    return std::ranges::max(nodes, {}, &TreeNode::count).count;
}

/// What is not hidden of `whole` seconds behind `behind` of them: the last bucket never is.
double exposed(double whole, double behind, int buckets) {
    return std::max(whole - behind, whole / buckets);
}

/// Parameters that are asked for in each pass of a step with `most` replicas on a rank: by one rank
/// of a host, of one rank of each other host, which sends the shards of all ranks of its own.
double lent_between_hosts(ScalingInputs const& inputs, int ranks, int most) {
    auto const here = std::min(ranks, inputs.ranks_per_host);
    auto const others = (ranks - 1) / here; // hosts
    auto const bytes = inputs.arena_bytes / inputs.buckets * others / (others + 1);
    // As many requests and answers as it sends, it takes.
    auto const messages = 2 * others * (1 + here);
    auto const bucket_s = 2 * inputs.between.latency_s + messages * LinkModel{}.message_s +
                          bytes / inputs.between.bytes_per_s;
    auto const pass_s = inputs.alone.compute / inputs.lent_passes;
    return most * inputs.lent_passes * exposed(inputs.buckets * bucket_s, pass_s, inputs.buckets);
}

/// Sums between hosts on the route that training takes, and parameters on the way back, as far as
/// backward and forward do not hide them.
double sum_between_hosts(ScalingInputs const& inputs, std::vector<TreeNode> const& nodes) {
    auto const ranks = static_cast<int>(nodes.size());
    if (ranks <= inputs.ranks_per_host) {
        return 0;
    }
    auto const hosts = filled_hosts(ranks, inputs.ranks_are_hosts ? 1 : inputs.ranks_per_host);
    auto const shard_bytes = inputs.arena_bytes / inputs.buckets / ranks;
    auto const root = root_of(nodes);
    auto link = inputs.ranks_are_hosts ? device_link : LinkModel{};
    auto const partials = partials_of(root, nodes, hosts);
    auto effort = faster_route(root, partials, hosts, shard_bytes * inputs.carried, link);
    effort.shards = shards_to_other_hosts(HostSchedule(root, partials, hosts, 0, effort.route),
                                          inputs.ranks_per_host);
    link.latency_s = inputs.between.latency_s;
    link.bytes_per_s = inputs.between.bytes_per_s / std::min(ranks, inputs.ranks_per_host);
    // Buckets follow each other through the rounds: what they wait for, they wait for together.
    auto const of_bucket = [&](double bytes) {
        return link.seconds(effort, bytes) - effort.rounds * link.latency_s;
    };
    auto const there = (effort.rounds + latencies_of_sums(hosts.count())) * link.latency_s +
                       inputs.buckets * of_bucket(shard_bytes * inputs.carried);
    if (inputs.lent_passes > 0) {
        return there + lent_between_hosts(inputs, ranks, max_over(nodes));
    }
    auto const back = effort.rounds * link.latency_s + inputs.buckets * of_bucket(shard_bytes);
    auto const forward_s = inputs.alone.compute - inputs.alone.backward;
    if (inputs.overlaps) {
        return exposed(there + back, inputs.alone.backward, inputs.buckets);
    }
    return there + (inputs.follows ? exposed(back, forward_s, inputs.buckets) : back);
}

StepLoad load_on(ScalingInputs const& inputs, int ranks) {
    if (inputs.load) {
        return inputs.load(ranks);
    }
    auto const replicas = inputs.replicas > 0 ? inputs.replicas : ranks;
    return {replicas, replicas * inputs.batch, 1};
}

Prediction without_speed_up(ScalingInputs const& inputs, int ranks) {
    Prediction row;
    row.ranks = ranks;
    auto const load = load_on(inputs, ranks);
    row.replicas = load.replicas;
    auto const nodes = subtrees_of_ranks(static_cast<int>(row.replicas), ranks);
    int const here = std::min(ranks, inputs.ranks_per_host);
    row.hosts = (ranks + inputs.ranks_per_host - 1) / inputs.ranks_per_host;
    auto& parts = row.parts;
    parts.compute = max_over(nodes) * load.compute *
                    on_line(inputs.alone.compute, inputs.together.compute, inputs.measured, here);
    parts.backward = inputs.alone.backward;
    parts.sum = sum_within_host(inputs, here);
    parts.update = update_on(inputs, ranks, here);
    parts.imbalance = ranks > 1 ? inputs.together.imbalance : 0;
    if (row.hosts > 1) {
        parts.imbalance = std::max(parts.imbalance, inputs.alone.imbalance);
    }
    parts.rest = on_line(inputs.alone.rest, inputs.together.rest, inputs.measured,
                         std::min(here, inputs.measured));
    row.between_s = sum_between_hosts(inputs, nodes);
    row.step_s =
        parts.compute + parts.sum + parts.update + parts.imbalance + parts.rest + row.between_s;
    row.samples_per_s = static_cast<double>(load.samples) / row.step_s;
    return row;
}

} // namespace

NetworkModel NetworkModel::through(double small_bytes, double small_s, double large_bytes,
                                   double large_s) {
    auto const per_byte = std::max(large_s - small_s, 0.01 * large_s) / (large_bytes - small_bytes);
    return {std::max(small_s - small_bytes * per_byte, 0.0), 1 / per_byte};
}

NetworkModel NetworkModel::of_sums(int hosts, double small_bytes, double small_s,
                                   double large_bytes, double large_s) {
    auto network = through(small_bytes, small_s, large_bytes, large_s);
    auto const layout = filled_hosts(hosts, 1);
    auto const nodes = subtrees_of_ranks(hosts, hosts);
    auto const root = root_of(nodes);
    auto const effort =
        faster_route(root, partials_of(root, nodes, layout), layout, small_bytes / hosts);
    network.latency_s /= 2 * effort.rounds + latencies_of_sums(hosts);
    network.bytes_per_s *= 2.0 * (hosts - 1) / hosts; // what a sum moves through each host
    return network;
}

Prediction predict(ScalingInputs const& inputs, int ranks) {
    auto row = without_speed_up(inputs, ranks);
    row.speed_up = row.samples_per_s / without_speed_up(inputs, 1).samples_per_s;
    row.efficiency = row.speed_up / ranks;
    return row;
}

} // namespace lockstep::comm
