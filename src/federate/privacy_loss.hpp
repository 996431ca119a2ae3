#pragma once

#include "federate/accountant.hpp"

#include <cstdint>

namespace lockstep::federate {

/// The epsilon of `rounds` rounds at `delta` from the distribution of the privacy loss: Gopi, Lee,
/// Wutschitz, "Numerical composition of differential privacy" (arXiv 2106.02848), for sites, or
/// samples, that are added or removed. An upper bound as Renyi's, and never above it. Takes
/// the time of four to ten transforms of at most 2^20 values.
double epsilon_of_losses(SampledGaussian const& round, std::int64_t rounds, double delta);

} // namespace lockstep::federate
