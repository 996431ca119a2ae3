#pragma once

#include "lockstep/config/deck_source.hpp"

#include <map>
#include <string>
#include <vector>

namespace lockstep::config {

/// Two keys for one thing, of which only one can hold.
struct Alternatives {
    char const* one;
    char const* other;
    char const* why; ///< one source may not set both; empty: it may, and the second holds
};

std::vector<Alternatives> alternatives();

/// A key that has no effect, because a later source has set another key for the same thing.
struct ReplacedKey {
    std::string key; ///< "data.global-batch"
    std::string by;  ///< "data.batch"
};

/// Returns the keys without effect: of two keys for one thing, the one from the later source holds,
/// the command line's over a deck's, a later deck's over an earlier one's. A key that says 0 or
/// nothing leaves the choice to the other.
///
/// Throws  Error 64 where one source sets both, and they do not say the same
std::vector<ReplacedKey> replaced_keys(std::map<std::string, Written> const& values);

} // namespace lockstep::config
