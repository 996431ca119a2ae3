#include "departure.hpp"

#include "base/arrival.hpp"
#include "base/signal_sender.hpp"
#include "base/text.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "comm/heartbeats.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <csignal>

namespace lockstep::train {

int Departure::asked() const {
    auto signal = parts_.signals.pending();
    if (signal == SIGTERM && launched_ranks() > 0 && !others_have_asked()) {
        signal = ended_by_launcher;
    }
    if (signal == 0 && also_) {
        signal = also_();
    }
    return signal != 0 ? signal : parts_.walltime.reason();
}

bool Departure::agree() {
    auto const asked_of = comm::all_gather(parts_.world, asked());
    auto first = std::find_if(asked_of.begin(), asked_of.end(),
                              [](int each) { return each != 0 && each != ended_by_launcher; });
    if (first == asked_of.end()) {
        first = std::find(asked_of.begin(), asked_of.end(), ended_by_launcher);
    }
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
    bool const by_launcher = signal == ended_by_launcher;
    if (auto const* const heartbeats = comm::own_heartbeats(parts_.world)) {
        heartbeats->own().leaves.store(by_launcher ? 0 : 1);
    }
    parts_.observers.tell(Signalled{parts_.progress.step, reason_, rank, by_launcher});
}

} // namespace lockstep::train
