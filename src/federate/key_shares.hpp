#pragma once

#include "federate/federation.hpp"
#include "federate/masks.hpp"
#include "federate/roster.hpp"

#include <cstdint>
#include <string>

namespace lockstep::federate {

/// A site's secrets of a round, and the shares of them that sites exchange: each is encrypted for
/// the one site that may read it.
class KeyShares {
  public:
    KeyShares(Federation const& federation, PrivateKey const& key, std::int64_t round);

    RoundSecrets const& secrets() const noexcept { return secrets_; }

    /// Adds a share for each of `sites` to a message, and commitments to all of them.
    ///
    /// Throws  Error 65 for fewer sites than the threshold, or more than 255, and for an invalid
    ///         public key of a site
    void deal(Roster const& sites, Message& message) const;

    /// What `from` has shared with this site: the share of its own mask where its update counts, of
    /// its key of pair masks where it does not. Never both.
    ///
    /// Throws  Error 65 or 66 where its message is refused or missing
    Digest share_from(Member const& from, bool counts) const;

  private:
    Secret key_with(Member const& other, std::string const& from, std::string const& to) const;

    Federation const& federation_;
    PrivateKey const& key_;
    std::int64_t round_;
    RoundSecrets secrets_;
};

} // namespace lockstep::federate
