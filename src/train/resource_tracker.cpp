#include "train/resource_tracker.hpp"

#include "base/network_bytes.hpp"
#include "base/proc_file.hpp"
#include "base/text.hpp"
#include "comm/collectives.hpp"

#include <algorithm>
#include <span>

namespace lockstep::train {

namespace {

constexpr std::size_t max_listed_ranks = 16; ///< of more, those at the extremes are told alone
constexpr double energy_every_s = 1;

double host_network_bytes() {
    return network_bytes(proc_text("/proc/self/net/dev"));
}

/// Whether no lower rank has the same device; ranks that know none have none.
bool is_first_with(comm::Communicator const& world, std::string const& device) {
    auto const all = comm::all_gather_text(world, device);
    auto const first = std::find(all.begin(), all.end(), device);
    return !device.empty() && first - all.begin() == world.rank();
}

} // namespace

ResourceTracker::ResourceTracker(comm::Communicator const& world, comm::Topology const& topology,
                                 AttemptTotals const& totals, Since const& since)
    : world_(world), totals_(totals), hosts_(static_cast<int>(topology.hosts.size())),
      speaks_for_host_(topology.local_rank == 0), before_(since.used), since_start_(since.watch),
      since_last_(since.watch) {
    gauge_.look_at(world.device());
    speaks_for_device_ = is_first_with(world, gauge_.uuid());
    network_at_start_ = host_network_bytes();
    device_joules_at_start_ = gauge_.joules().value_or(0);
}

void ResourceTracker::sample() {
    if (speaks_for_host_ && since_energy_.seconds() > energy_every_s) {
        static_cast<void>(package_.joules()); // so that it never starts over twice unseen
        since_energy_.restart();
    }
    if (auto const busy = gauge_.utilization()) {
        busy_sum_ += *busy;
        ++busy_samples_;
    }
}

ResourceTracker::Values ResourceTracker::counters() {
    auto const used = process_usage();
    Values own{};
    own[user] = used.user_s - before_.user_s;
    own[system] = used.system_s - before_.system_s;
    own[memory] = used.memory_peak;
    own[read] = used.disk_read - before_.disk_read;
    own[written] = used.disk_written - before_.disk_written;
    own[exchanged] = static_cast<double>(totals_.exchanged_bytes);
    if (speaks_for_host_) {
        auto const joules = package_.joules();
        own[network] = host_network_bytes() - network_at_start_;
        own[package_joules] = joules.value_or(0);
        own[has_package_joules] = joules ? 1 : 0;
    }
    if (auto const joules = gauge_.joules(); joules && speaks_for_device_) {
        own[device_joules] = *joules - device_joules_at_start_;
        own[has_device_joules] = 1;
    }
    own[busy_sum] = busy_sum_;
    own[busy_samples] = busy_samples_;
    return own;
}

Resources ResourceTracker::since_last() {
    auto const now = counters();
    auto passed = now;
    for (auto const value : {user, system, read, written, exchanged, network, package_joules,
                             device_joules, busy_sum, busy_samples}) {
        passed[value] -= last_[value];
    }
    last_ = now;
    return gathered(passed, since_last_.restart());
}

Resources ResourceTracker::in_all() {
    return gathered(counters(), since_start_.seconds());
}

Resources ResourceTracker::gathered(Values const& own, double seconds) const {
    auto const ranks = static_cast<std::size_t>(world_.size());
    std::vector<double> all(ranks * values);
    std::vector<std::int64_t> bounds;
    for (std::size_t rank = 0; rank <= ranks; ++rank) {
        bounds.push_back(static_cast<std::int64_t>(rank * values));
    }
    auto const place =
        static_cast<std::ptrdiff_t>(static_cast<std::size_t>(world_.rank()) * values);
    std::copy(own.begin(), own.end(), all.begin() + place);
    comm::all_gather_slices(world_, std::span(all), bounds);

    Values sums{};
    std::vector<RankResources> of_rank;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        std::span const its(all.data() + rank * values, values);
        std::ranges::transform(its, sums, sums.begin(), std::plus<>());
        of_rank.push_back({.rank = static_cast<int>(rank),
                           .user_s = its[user],
                           .system_s = its[system],
                           .memory_peak = its[memory],
                           .disk_read = its[read],
                           .disk_written = its[written],
                           .exchanged = its[exchanged]});
        if (its[busy_samples] > 0) {
            of_rank.back().device_utilization = its[busy_sum] / its[busy_samples];
        }
        if (its[has_device_joules] > 0) {
            of_rank.back().device_joules = its[device_joules];
        }
    }
    auto const max = [&](auto const& value) {
        return *std::ranges::max_element(of_rank, {}, value);
    };
    Resources resources{.seconds = seconds,
                        .ranks = world_.size(),
                        .user_s = sums[user],
                        .system_s = sums[system],
                        .disk_read = sums[read],
                        .disk_written = sums[written],
                        .exchanged = sums[exchanged],
                        .network = sums[network],
                        .hosts = hosts_,
                        .hosts_with_energy = static_cast<int>(sums[has_package_joules]),
                        .memory_peak = max(&RankResources::memory_peak),
                        .busiest = max(&RankResources::processor_s),
                        .idlest =
                            *std::ranges::min_element(of_rank, {}, &RankResources::processor_s)};
    if (sums[has_package_joules] > 0) {
        resources.processor_joules = sums[package_joules];
    }
    if (sums[has_device_joules] > 0) {
        resources.device_joules = sums[device_joules];
    }
    if (sums[busy_samples] > 0) {
        resources.device_utilization = sums[busy_sum] / sums[busy_samples];
    }
    if (ranks <= max_listed_ranks) {
        resources.of_rank = std::move(of_rank);
    }
    return resources;
}

} // namespace lockstep::train
