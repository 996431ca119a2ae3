#pragma once

#include "federate/keys.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::federate {

/// A share of a secret: the polynomials' values at `at`.
struct Share {
    std::uint8_t at = 0; ///< from 1
    Digest bytes{};
};

/// Shamir's secret sharing ("How to share a secret", CACM 22, 1979) of each byte over GF(2^8), with
/// the polynomial x^8 + x^4 + x^3 + x + 1: any `threshold` shares give the secret, fewer reveal
/// nothing about it. No table index and no branch depends on secret values.
///
/// `shared_with`: 1 to 255 sites, at 1, 2, …; the coefficients come from the stream of
/// `randomness`, so that the same shares can be made again.
///
/// Throws  Error 70 for a threshold of 0 or above `shared_with`, or more than 255 sites
std::vector<Share> shares_of(Secret const& secret, std::size_t shared_with, std::size_t threshold,
                             Secret const& randomness);

/// A commitment to a share, published beforehand so that a wrong share is detected; it reveals
/// nothing about the share.
Digest commitment_to(Digest const& share);

/// The secret that as many shares as the threshold, with different `at`, give; wrong shares, or too
/// few, give another one.
Secret joined_shares(std::span<Share const> shares);

} // namespace lockstep::federate
