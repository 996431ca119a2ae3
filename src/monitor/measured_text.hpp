#pragma once

#include "lockstep/events/events.hpp"

#include <string>

namespace lockstep::monitor {

/// A measurement for a terminal: "test: 10,000 samples, loss 0.250000, accuracy 0.912000", or a
/// line for each metric where that would be too long to be read, and a table of the metrics of
/// single classes, of many classes only the first if `shortened`. `row` is what they are metrics
/// of: the class, or a target. Each line has its end. A metric over all classes stands as "name
/// value" in either form.
std::string measured_text(train::Measured const& measured, std::string const& row = "class",
                          bool shortened = false);

} // namespace lockstep::monitor
