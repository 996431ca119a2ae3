#pragma once

namespace lockstep::search {

/// The trials that wait to be trained, all alike.
struct Waiting {
    int trials = 1;
    int min_ranks = 1; ///< of a trial
    int max_ranks = 1;
};

/// How many ranks a trial gets so that all of them are done soonest, where all ranks are free: few
/// while there are many trials, since several ranks together are a little slower than each on its
/// own trial, and more for the last trials, so that no rank is idle.
int ranks_of_next_trial(Waiting const& waiting, int ranks);

/// The factor by which the rank-seconds of a trial grow when it runs on several ranks.
double effort_of(int ranks);

} // namespace lockstep::search
