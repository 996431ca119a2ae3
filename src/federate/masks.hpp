#pragma once

#include "federate/roster.hpp"
#include "federate/shamir.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

// Secure aggregation after Bonawitz et al., "Practical secure aggregation for privacy-preserving
// machine learning" (CCS 2017), with an honest but curious server: section 4.0.1, figure 4 without
// the parts for active adversaries.
namespace lockstep::federate {

/// A site's secrets of one round, made from its private key, so that they are the same when a
/// killed step is repeated.
struct RoundSecrets {
    Secret share;                ///< X25519: decrypts shares
    Secret mask;                 ///< X25519: masks that cancel with those of other sites
    Secret self;                 ///< mask of this site alone
    Secret coefficients_of_mask; ///< of the polynomials that share `mask`
    Secret coefficients_of_self; ///< the same of `self`

    /// `round`: the federation's id and the round's number.
    static RoundSecrets of(Secret const& private_key, std::string const& round);
};

/// Adds a site's masks: its own, and one for each other of `masked`, which the other subtracts, or
/// adds where its name comes first.
///
/// Throws  Error 65 for an invalid public key of another site
void add_masks(std::span<std::uint32_t> words, std::string const& own, RoundSecrets const& secrets,
               std::vector<Member> const& masked);

/// Removes from the sum the own mask of a site whose update counts.
void take_self_mask(std::span<std::uint32_t> sum, Secret const& self);

/// Removes from the sum the masks between a missing site and those that count.
///
/// Throws  Error 65 for an invalid public key
void take_pair_masks(std::span<std::uint32_t> sum, Member const& missing, Secret const& mask,
                     std::vector<Member> const& counted);

} // namespace lockstep::federate
