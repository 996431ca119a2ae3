#pragma once

#include <string>

namespace lockstep::app {

/// A batch system that answers here, and what a node of its default partition has.
struct Scheduler {
    std::string name; ///< "slurm", "pbs"; empty: none
    std::string text; ///< "Slurm, partition main: 4 nodes of 64 cores, 4 GPUs"
    int cores = 0;    ///< of a node; 0: not known
    int gpus = 0;
};

/// Inside a job its text alone; else asks sinfo and qstat, each for a few seconds at most.
Scheduler find_scheduler();

} // namespace lockstep::app
