#pragma once

#include <span>

#include "federate/keys.hpp"

namespace lockstep::federate {

/// Adds a Gaussian random number to each value, drawn (Box, Muller 1958) from the ChaCha20 stream
/// of a key: the same again when a killed step is repeated, since two noisy sums of one round would
/// give the noise away.
void add_gaussian_noise(std::span<double> values, Secret const& key, double standard_deviation);

/// A number in [0, 1) that a key stands for.
double uniform_of(Secret const& key);

} // namespace lockstep::federate
