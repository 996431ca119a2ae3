#pragma once

#include "federate/charter.hpp"

#include <cstdint>

namespace lockstep::sites {

/// What a simulated federation is told, besides its deck.
struct SimulationOptions {
    federate::Charter charter;
    bool secure = false;
    std::int64_t sites = 0;
    double dirichlet = 0;    ///< 0: samples are dealt out evenly
    std::int64_t groups = 1; ///< of ranks, each of which trains a site
};

} // namespace lockstep::sites
