#pragma once

#include <cstdint>
#include <string>

namespace lockstep::federate {

/// One round of a federation, or one step of DP-SGD, as the accountant sees it: each site, or each
/// sample, takes part with a probability, independently of others, and the sum of changes, or of
/// gradients, of a norm of at most 1 gets Gaussian noise.
struct SampledGaussian {
    double rate = 1;  ///< probability that each takes part, in (0, 1]
    double noise = 0; ///< standard deviation divided by the largest norm
};

/// Renyi differential privacy of one round at an order above 1: Mironov, "Renyi differential
/// privacy" (CSF 2017), and Mironov, Talwar, Zhang, "Renyi differential privacy of the sampled
/// Gaussian mechanism" (arXiv 1908.10530), section 3.3. Infinite where its series does not
/// converge.
double renyi_divergence(SampledGaussian const& round, double order);

/// The epsilon of `rounds` rounds at `delta`, the least over 156 orders from 1.1 to 1024, for
/// neighbours that differ in one site, or one sample; after Canonne, Kamath, Steinke, "The discrete
/// Gaussian for differential privacy" (arXiv 2004.00010), proposition 12.
struct RenyiBound {
    double epsilon = 0;
    double order = 0; ///< that gives it; 0 where epsilon is infinite
};
RenyiBound renyi_bound(SampledGaussian const& round, std::int64_t rounds, double delta);

/// Epsilon by an accountant: rdp is renyi_bound, prv epsilon_of_losses (privacy_loss.hpp), which
/// is smaller.
double epsilon_of(SampledGaussian const& round, std::int64_t rounds, double delta,
                  std::string const& accountant);

/// The most rounds, below 2^40, whose epsilon at `delta` is at most `epsilon`; 0: not even one.
/// With prv fewer by up to a thousandth, so that it is found soon.
std::int64_t max_rounds(SampledGaussian const& round, double epsilon, double delta,
                        std::string const& accountant);

} // namespace lockstep::federate
