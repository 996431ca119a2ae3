#pragma once

#include <vector>

namespace lockstep::search {

/// How much of the error of a random forest (L. Breiman, Machine Learning 45, 2001) each column is
/// worth: by how much it grows when the column's values change places, as shares of 1. All 0 for
/// fewer than 4 rows or equal targets.
///
/// Shape  rows [n][columns], targets [n], finite
std::vector<double> permutation_importance(std::vector<std::vector<double>> const& rows,
                                           std::vector<double> const& targets);

} // namespace lockstep::search
