#pragma once

#include "checkpoint/reader.hpp"
#include "lockstep/data/dataset.hpp"

#include <cstdint>

namespace lockstep::train {

/// Adds the class names of the training set to a record; `train` is null where there is none.
void note_classes(checkpoint::Record& record, data::Dataset const* train);

/// Throws  Error 64 when a checkpoint was trained on other data; or on classes with other names
///         (older checkpoints have none)
void require_same_data(checkpoint::Reader const& reader, std::uint64_t fingerprint,
                       data::Dataset const* train);

} // namespace lockstep::train
