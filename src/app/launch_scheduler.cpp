#include "launch_scheduler.hpp"

#include "lockstep/base/batch_job.hpp"
#include "lockstep/base/child.hpp"
#include "lockstep/base/text.hpp"

#include <algorithm>
#include <cstdlib>
#include <vector>

namespace lockstep::app {

namespace {

constexpr double limit_s = 5;

/// 4 of "gpu:h100:4(S:0-1),lustre:1"; 0 where there is none.
int gpus_of(std::string const& resources) {
    int gpus = 0;
    for (auto const& resource : split(resources, ',')) {
        auto const words = split(resource.substr(0, resource.find('(')), ':');
        if (words.size() > 1 && words.front() == "gpu") {
            gpus += std::atoi(words.back().c_str());
        }
    }
    return gpus;
}

/// Of "PARTITION|NODES|CORES|RESOURCES" lines, that of the default partition, or the first.
Scheduler slurm_of(std::string const& listing) {
    auto const lines = split(std::string(trimmed(listing)), '\n');
    auto const chosen = std::find_if(lines.begin(), lines.end(), [](std::string const& line) {
        return line.substr(0, line.find('|')).ends_with('*');
    });
    Scheduler slurm{.name = "slurm", .text = "Slurm"};
    auto const words = lines.empty() ? std::vector<std::string>()
                                     : split(chosen == lines.end() ? lines.front() : *chosen, '|');
    if (words.size() == 4) {
        slurm.cores = std::atoi(words[2].c_str());
        slurm.gpus = gpus_of(words[3]);
        auto const name = words[0].substr(0, words[0].find('*'));
        slurm.text = concat("Slurm, partition ", name, ": ", words[1], " nodes of ", slurm.cores,
                            " cores", slurm.gpus > 0 ? concat(", ", slurm.gpus, " GPUs") : "");
    }
    return slurm;
}

} // namespace

Scheduler find_scheduler() {
    if (auto const job = batch_job(0); !job.scheduler.empty()) {
        return {.name = "", .text = concat("job ", job.id, " of ", job.scheduler, " around us")};
    }
    if (auto const listing = output_of({"sinfo", "-h", "-o", "%P|%D|%c|%G"}, limit_s)) {
        return slurm_of(*listing);
    }
    if (output_of({"qstat", "-Q"}, limit_s)) {
        return {.name = "pbs", .text = "PBS"};
    }
    return {};
}

} // namespace lockstep::app
