#pragma once

#include "lockstep/base/error.hpp"

#include <string>

#include "attempt.hpp"

namespace lockstep::launch {

/// Which way the end of an attempt leads. Only a loss makes a host suspect.
enum class Road {
    word,   ///< the run's own: done, a signal, the walltime, or an error that a restart meets again
    memory, ///< the kernel has killed a rank for want of memory
    launcher, ///< mpirun or srun itself was killed
    loss      ///< of a rank or a host
};

struct Ending {
    Road road = Road::loss;
    ExitCode word = ExitCode::rank_lost; ///< the run's own code
};

/// `asked`: a signal has asked to end the run.
Ending ending_of(AttemptEnd const& end, bool asked);

/// Whether an error's text is that of a disk without room, or one that is read-only: no host is
/// worse than others for it.
bool tells_disk(std::string const& text);

/// Whether an error's text is the verdict of other hosts that one computes wrongly.
bool tells_wrong_result(std::string const& text);

/// The host that a root-cause line names; empty where it names none.
std::string host_named_in(std::string const& told);

} // namespace lockstep::launch
