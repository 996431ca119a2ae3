#include "departure.hpp"

#include "base/text.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>

namespace lockstep::train {

int Departure::asked() const {
    auto signal = parts_.signals.pending();
    if (signal == 0 && also_) {
        signal = also_();
    }
    return signal != 0 ? signal : parts_.walltime.reason();
}

bool Departure::agree() {
    auto const asked_of = comm::all_gather(parts_.world, asked());
    auto const first =
        std::find_if(asked_of.begin(), asked_of.end(), [](int each) { return each != 0; });
    if (first != asked_of.end()) {
        leave(*first, static_cast<int>(first - asked_of.begin()));
    }
    return first != asked_of.end();
}

void Departure::leave(int signal, int rank) {
    if (signal == job_too_short && parts_.totals.steps == 0) {
        // A new job would come no further, and job scripts would start one after the other.
        throw AgreedError(
            ExitCode::usage,
            {"the job has too little time for its first step",
             "the time limit is too short for start-up, one step and a checkpoint",
             "Ask for more time (sbatch --time, qsub -l walltime or run.walltime-seconds)"},
            rank, concat(comm::place_of_rank(parts_.world, rank), " in training"));
    }
    reason_ = signal_name(signal);
    parts_.observers.tell(Signalled{parts_.progress.step, reason_, rank});
}

} // namespace lockstep::train
