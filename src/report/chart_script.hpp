#pragma once

#include "report/chart.hpp"

#include <string>
#include <vector>

namespace lockstep::report {

/// A gnuplot script that draws the charts into files of the directory it is run in, each as
/// FILE.FORMAT.partial; formats are png, pdf and svg.
std::string script_of(std::vector<Chart> const& charts, std::vector<std::string> const& formats);

} // namespace lockstep::report
