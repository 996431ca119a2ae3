#pragma once

#include <vector>

namespace lockstep::search {

/// Permutation importance of each column in a random forest (L. Breiman, Machine Learning 45,
/// 2001): how much the error grows when the column's values are shuffled, scaled to a sum of 1. All
/// 0 for fewer than 4 rows, equal targets, or where no shuffle raises the error.
///
/// Shape  rows [n][columns], targets [n], finite
std::vector<double> permutation_importance(std::vector<std::vector<double>> const& rows,
                                           std::vector<double> const& targets);

} // namespace lockstep::search
