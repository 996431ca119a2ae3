#pragma once

#include "lockstep/base/error.hpp"

namespace lockstep::train {

/// What a run survives: the disk was full, or did not do what it was told.
inline bool of_the_disk(Error const& failure) {
    return failure.code() == ExitCode::io || failure.code() == ExitCode::cannot_create;
}

} // namespace lockstep::train
