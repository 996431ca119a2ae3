#pragma once

#include "federate/federation.hpp"

#include <cstdint>

namespace lockstep::federate {

/// Epsilon at the charter's delta after the rounds that are over: also those that nobody was drawn
/// for, whose models have noise, too, but not those that were abandoned before their sum was made.
struct Spent {
    std::int64_t rounds = 0;
    double published = 0; ///< against those who see only the models: sites are drawn in secret
    double known = 0;     ///< against those who know which sites were drawn
};
Spent spent(Federation const& federation, std::int64_t more_rounds = 0);

} // namespace lockstep::federate
