#pragma once

#include <limits>
#include <string>
#include <vector>

namespace lockstep::launch {

/// The limits of jobs of a partition.
struct Partition {
    std::string name;
    int nodes = 0;
    int cores = 0; ///< per node; those of the largest node where nodes differ
    int gpus = 0;
    double longest_s = std::numeric_limits<double>::infinity(); ///< of a job

    std::string text() const; ///< "4 nodes of 64 cores, 4 GPUs"
};

/// A batch system that answers here.
struct Scheduler {
    std::string name;                  ///< "slurm", "pbs"; empty: none
    std::string text;                  ///< "Slurm"
    std::vector<Partition> partitions; ///< only with Slurm; the default partition is first

    /// The named one, else the first; nullptr where it is not known.
    Partition const* partition(std::string const& wanted) const;
    std::vector<std::string> partition_names() const;
};

/// Inside a job only from the environment; else asks sinfo and qstat, each for a few seconds at
/// most.
Scheduler find_scheduler();

} // namespace lockstep::launch
