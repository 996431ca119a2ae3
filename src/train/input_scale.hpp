#pragma once

#include "checkpoint/record.hpp"
#include "lockstep/data/dataset.hpp"

#include <optional>
#include <utility>
#include <vector>

namespace lockstep::train {

/// Mean and standard deviation that the first input is normalised by: one value each, one for each
/// channel, or none.
using InputScale = std::pair<std::vector<double>, std::vector<double>>;

/// Records the scale of the training set, so that weights can be measured where that set is not
/// available.
void note_scale(checkpoint::Record& record, data::Dataset const& training);

/// The recorded scale; nothing for files that were written before it was recorded.
std::optional<InputScale> scale_of(checkpoint::Record const& record);

} // namespace lockstep::train
