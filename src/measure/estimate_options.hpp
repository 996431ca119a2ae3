#pragma once

#include <cstdint>
#include <vector>

namespace lockstep::measure {

/// What the command line of estimate says.
struct EstimateOptions {
    std::int64_t steps = 20;
    std::int64_t max_ranks = 1024;
    std::int64_t per_host = 0; ///< 0: as many as on this host
    std::vector<std::int64_t> batches;
    double price = 0; ///< of one rank, an hour
    double watts = 0; ///< of one rank
    double gbit = 0;  ///< 0: measured, or else an assumption
    double latency_us = 0;
    bool json = false;
};

} // namespace lockstep::measure
