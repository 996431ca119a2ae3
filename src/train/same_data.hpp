#pragma once

#include "checkpoint/reader.hpp"
#include "lockstep/data/facts.hpp"

#include <cstdint>

namespace lockstep::train {

/// Throws  Error 64 when a checkpoint was trained on other data; or on samples that mean something
///         else: classes or columns with other names (older checkpoints have none)
void require_same_data(checkpoint::Reader const& reader, std::uint64_t fingerprint,
                       data::Facts const& facts);

} // namespace lockstep::train
