#pragma once

#include "federate/keys.hpp"

#include <span>

namespace lockstep::federate {

/// Adds a Gaussian random number to each value, drawn (Box, Muller 1958) from the ChaCha20 stream
/// of a key: the same when a killed step is repeated, since two differently noisy sums of one round
/// would reveal the noise.
void add_gaussian_noise(std::span<double> values, Secret const& key, double standard_deviation);

/// A number in [0, 1) derived from a key.
double uniform_of(Secret const& key);

} // namespace lockstep::federate
