#pragma once

#include "federate/federation.hpp"

#include <cstdint>
#include <vector>

namespace lockstep::federate {

/// The samples of these sites together.
double sum_of_samples(std::vector<Member> const& members);

/// The samples of all sites, as each has announced them last, in this round or before. An accepted
/// site that has announced none yet counts as their mean. Removed sites count too: their control
/// variates stay in the mean. For a round that has a roster.
///
/// Throws  Error 65 or 66 as Message::read
double samples_of_all(Federation const& federation, std::int64_t round);

} // namespace lockstep::federate
