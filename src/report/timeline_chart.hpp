#pragma once

#include "report/chart.hpp"

#include <string>
#include <vector>

#include "stretches.hpp"

namespace lockstep::report {

/// The attempts of a run as bars, one below the other, by what their time went into, with the
/// losses and their causes. Empty for a run of one attempt without a loss, and where no time is
/// recorded.
Chart timeline_chart(std::string const& name, std::vector<AttemptStretches> const& attempts,
                     monitor::EffectiveTime const& whole);

} // namespace lockstep::report
