#pragma once

#include "federate/roster.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::federate {

/// The mean change of the sites `counted`, from the sum of their encoded changes: divided by their
/// weights; with differential privacy, given noise that is drawn with the key `noise`, and divided
/// by the expected number of sites.
///
/// Shape  as `sum`
std::vector<double> mean_change(std::vector<std::uint32_t> const& sum, Roster const& sites,
                                std::vector<std::string> const& counted, Charter const& charter,
                                Secret const& noise);

/// The same of a sum of 0, with differential privacy.
std::vector<double> mean_of_noise(std::size_t values, Charter const& charter, Secret const& noise);

} // namespace lockstep::federate
