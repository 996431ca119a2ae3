#pragma once

namespace lockstep::search {

/// Of the trials that are to be trained, each like the others.
struct Waiting {
    int trials = 1;
    int least = 1; ///< ranks of a trial
    int most = 1;
};

/// How many ranks a trial gets so that all of them are done soonest, where all ranks are free: few
/// while there are many trials, since several ranks are a little slower together than each by
/// itself, and more for the last ones, so that none is without work.
int ranks_of_next_trial(Waiting const& waiting, int ranks);

/// How much longer ranks are busy with a trial when there are several of them, as a factor.
double effort_of(int ranks);

} // namespace lockstep::search
