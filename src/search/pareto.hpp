#pragma once

#include <cstddef>
#include <vector>

namespace lockstep::search {

/// Whether `a` is nowhere worse than `b`, and somewhere better; less is better.
bool dominates(std::vector<double> const& a, std::vector<double> const& b);

/// The fronts of a set, best first: each has the indices of those that only earlier fronts dominate
/// (K. Deb et al., "A fast and elitist multiobjective genetic algorithm: NSGA-II", 2002).
///
/// Shape  losses [n][goals]
std::vector<std::vector<std::size_t>> fronts_of(std::vector<std::vector<double>> const& losses);

/// For each member of a front, the distance between its neighbours, summed over goals; infinite at
/// the ends.
std::vector<double> crowding(std::vector<std::vector<double>> const& losses,
                             std::vector<std::size_t> const& front);

} // namespace lockstep::search
