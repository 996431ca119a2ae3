#pragma once

#include "checkpoint/record.hpp"
#include "lockstep/data/dataset.hpp"

#include <optional>
#include <utility>
#include <vector>

namespace lockstep::train {

/// Mean and standard deviation that the first inputs are scaled by: one value each, one for each
/// channel, or none.
using InputScale = std::pair<std::vector<double>, std::vector<double>>;

/// Notes the scale of what is learnt from, so that weights can be measured where that is not.
void note_scale(checkpoint::Record& record, data::Dataset const& training);

/// What was noted; nothing in files that were written before there was such a note.
std::optional<InputScale> scale_of(checkpoint::Record const& record);

} // namespace lockstep::train
