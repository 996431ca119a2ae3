#pragma once

#include "search/study.hpp"

#include <vector>

namespace lockstep::search {

/// How much each key of the space explains of the first goal, as shares of 1, in the space's order:
/// permutation importance on a random forest, over the newest results of all trials. Empty while
/// there are too few of them.
std::vector<double> importance_of_keys(Study const& study);

} // namespace lockstep::search
