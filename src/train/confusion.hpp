#pragma once

#include "batches/evaluate.hpp"
#include "lockstep/events/events.hpp"

#include <string>
#include <vector>

namespace lockstep::train {

/// What an evaluation counted, with a name for each class: its number where `names` has none.
Confusion confusion_of(Evaluation const& evaluation, std::vector<std::string> names);

} // namespace lockstep::train
