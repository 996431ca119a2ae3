#pragma once

#include "federate/federation.hpp"

#include <map>
#include <string>
#include <vector>

namespace lockstep::federate {

/// Which sites take part in a federation: the list that its coordinator signs, by their keys.
class Admission {
  public:
    /// `key`: that of the federation's coordinator
    Admission(Federation const& federation, PrivateKey const& key)
        : federation_(federation), key_(key) {}

    /// Lets sites take part, by the fingerprints of their cards, or all whose cards are here.
    ///
    /// Throws  Error 66 for a fingerprint that no card has, 65 where a site's card has another key
    ///         than the one that was accepted
    std::vector<std::string> accept(std::vector<std::string> const& fingerprints) const;

    /// Leaves accepted sites out from now on: no further round draws them, and in the round that is
    /// under way they are dropouts, whose messages of the present phase do not count; a listed
    /// update stays in the sum. Accepting one by its fingerprint undoes this.
    ///
    /// Throws  Error 66 for a name that no accepted site has
    std::vector<std::string> remove(std::vector<std::string> const& names) const;

    /// The accepted sites without those that were removed.
    std::map<std::string, PublicKey> remaining() const;

  private:
    void say_accepted(std::map<std::string, PublicKey> const& known,
                      std::vector<std::string> const& removed) const;

    Federation const& federation_;
    PrivateKey const& key_;
};

} // namespace lockstep::federate
