#pragma once

#include "federate/charter.hpp"
#include "lockstep/config/deck_source.hpp"

#include <map>
#include <optional>
#include <string>

namespace lockstep::federate {

/// What a key of the deck is to a federation, whose deck comes from its coordinator.
enum class Part {
    result,   ///< decides the result: the federation's, the same for all sites
    code,     ///< a file that the result depends on, or code that runs: named by each site itself
    place,    ///< where and how fast a site computes, reads and writes: the site's own
    reporting ///< what a site is told: the site's own
};

/// Nothing for a key that nobody has thought of. What may not change at a resume decides the result
/// unless it is listed.
std::optional<Part> part_of(config::Setting const& setting);

/// The part of a charter's deck that decides the result; `origin` is named in messages. A share of
/// data.train for validation belongs to it, files of another host do not.
config::DeckSource shared_deck(Charter const& charter, std::string const& origin);

/// The keys that a site has to name itself, with the coordinator's values.
std::map<std::string, std::string> keys_of_code(Charter const& charter);

} // namespace lockstep::federate
