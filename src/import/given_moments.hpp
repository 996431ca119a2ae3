#pragma once

#include <string>
#include <vector>

namespace lockstep::import {

/// Checks the mean and standard deviation that a command line gives; samples have `counts` of them,
/// or one for all, and `channels` tells so.
///
/// Throws  Error 64 for another number of values, or one that cannot be used
void require_given_moments(std::vector<double> const& mean, std::vector<double> const& std,
                           std::vector<std::size_t> const& counts, std::string const& channels);

} // namespace lockstep::import
