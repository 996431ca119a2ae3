#pragma once

namespace lockstep::train {

/// How many arrays of gradients a rank has for its replicas. Where they run one after the other,
/// one for each level of their subtree; where they run concurrently, one for each replica.
inline int gradient_arrays(int replicas, bool concurrent) {
    if (concurrent) {
        return replicas;
    }
    int levels = 1;
    for (int leaves = replicas; leaves > 1; leaves = (leaves + 1) / 2) {
        ++levels;
    }
    return levels;
}

} // namespace lockstep::train
