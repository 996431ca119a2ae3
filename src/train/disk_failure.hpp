#pragma once

#include "lockstep/base/error.hpp"

namespace lockstep::train {

/// Whether a failure is one that a run survives: the disk was full, or an operation on it failed.
inline bool of_the_disk(Error const& failure) {
    return failure.code() == ExitCode::io || failure.code() == ExitCode::cannot_create;
}

} // namespace lockstep::train
