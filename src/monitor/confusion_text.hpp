#pragma once

#include "lockstep/events/events.hpp"

#include <string>

namespace lockstep::monitor {

/// A table of which classes were taken for which, for a terminal: of few classes all counts, of
/// many the largest confusions. Several lines, each with its end; empty where nothing was counted.
std::string confusion_text(train::Confusion const& confusion);

} // namespace lockstep::monitor
