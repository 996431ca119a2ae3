#include "scheduler.hpp"

#include "base/batch_job.hpp"
#include "base/child.hpp"
#include "base/environment.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <vector>

namespace lockstep::launch {

namespace {

constexpr double limit_s = 5;

/// 4 of "gpu:h100:4(S:0-1),lustre:1"; 0 where there is none.
int gpus_of(std::string const& resources) {
    int gpus = 0;
    for (auto const& resource : split(resources, ',')) {
        auto const words = split(resource.substr(0, resource.find('(')), ':');
        if (words.size() > 1 && words.front() == "gpu") {
            gpus += number_of<int>(words.back()).value_or(0);
        }
    }
    return gpus;
}

/// 8 of "8+": of nodes that have 8 and more.
int minimum_of(std::string const& number) {
    return number_of<int>(number.substr(0, number.find('+'))).value_or(0);
}

/// The partitions in "PARTITION|NODES|CORES|RESOURCES|TIME" lines, one for each kind of node; a
/// star marks the partition of jobs that name none, unless Slurm's own variable does.
std::vector<Partition> partitions_of(std::string const& listing) {
    auto first = environment_text("SBATCH_PARTITION");
    std::vector<Partition> found;
    for (auto const& line : split(listing, '\n')) {
        auto const words = split(line, '|');
        if (words.size() != 5) {
            continue;
        }
        auto const name = words[0].substr(0, words[0].find('*'));
        first = first.empty() && name != words[0] ? name : first;
        auto at = std::find_if(found.begin(), found.end(),
                               [&](Partition const& one) { return one.name == name; });
        if (at == found.end()) {
            at = found.insert(at, Partition{.name = name});
        }
        at->nodes += number_of<int>(words[1]).value_or(0);
        at->cores = std::max(at->cores, minimum_of(words[2]));
        at->gpus = std::max(at->gpus, gpus_of(words[3]));
        at->longest_s = seconds_of(trimmed(words[4])).value_or(at->longest_s);
    }
    std::stable_partition(found.begin(), found.end(),
                          [&](Partition const& one) { return one.name == first; });
    return found;
}

} // namespace

std::string Partition::text() const {
    return concat(amount_of(nodes, "node"), " of ", amount_of(cores, "core"),
                  gpus > 0 ? concat(", ", amount_of(gpus, "GPU")) : "");
}

Partition const* Scheduler::partition(std::string const& wanted) const {
    auto const found =
        std::find_if(partitions.begin(), partitions.end(),
                     [&](Partition const& one) { return wanted.empty() || one.name == wanted; });
    return found == partitions.end() ? nullptr : &*found;
}

std::vector<std::string> Scheduler::partition_names() const {
    std::vector<std::string> names;
    for (auto const& one : partitions) {
        names.push_back(one.name);
    }
    return names;
}

Scheduler find_scheduler() {
    if (auto const job = batch_job(0); !job.scheduler.empty()) {
        return {.name = "",
                .text = concat("inside job ", job.id, " of ", job.scheduler),
                .partitions = {}};
    }
    if (auto const listing = output_of({"sinfo", "-h", "-o", "%P|%D|%c|%G|%l"}, limit_s)) {
        return {.name = "slurm", .text = "Slurm", .partitions = partitions_of(*listing)};
    }
    if (output_of({"qstat", "-Q"}, limit_s)) {
        return {.name = "pbs", .text = "PBS", .partitions = {}};
    }
    return {};
}

} // namespace lockstep::launch
