#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "federate/keys.hpp"

namespace lockstep::federate {

/// A share of a secret: the polynomials' values at `at`.
struct Share {
    std::uint8_t at = 0; ///< from 1
    Digest bytes{};
};

/// Shamir's secret sharing ("How to share a secret", CACM 22, 1979) of each byte over GF(2^8), with
/// the polynomial x^8 + x^4 + x^3 + x + 1: any `threshold` shares give the secret, fewer nothing
/// about it. No table is looked up by secret values, and no branch depends on one.
///
/// `shared_with`: 1 to 255 sites, at 1, 2, …; the coefficients come from the stream of
/// `randomness`, so that the same shares come again.
///
/// Throws  Error 70 for a threshold of 0 or above `shared_with`, or more than 255 sites
std::vector<Share> shares_of(Secret const& secret, std::size_t shared_with, std::size_t threshold,
                             Secret const& randomness);

/// What is said of a share beforehand, so that a wrong one is known: it tells nothing of it.
Digest commitment_to(Digest const& share);

/// The secret that as many shares as the threshold, at different places, give. Of wrong ones, or
/// too few, another.
Secret joined_shares(std::span<Share const> shares);

} // namespace lockstep::federate
