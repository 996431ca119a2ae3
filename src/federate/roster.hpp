#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "federate/charter.hpp"
#include "federate/fixed_point.hpp"
#include "federate/keys.hpp"

namespace lockstep::federate {

/// A site in a round, as it has announced itself.
struct Member {
    std::string name;
    PublicKey share_key{}; ///< X25519, of this round: for shares that are sent to it
    PublicKey mask_key{};  ///< X25519, of this round: for masks that cancel
    std::int64_t samples = 0;

    friend bool operator==(Member const&, Member const&) = default;
};

/// The sites of a round, sorted by name: signed by the coordinator, the same for all.
struct Roster {
    std::vector<Member> members;

    /// A line for each, and back. Throws  Error 65 for what is none
    std::string text() const;
    static Roster of_text(std::string const& text);

    /// Nothing where there is no such site.
    Member const* find(std::string const& name) const;
    std::size_t place_of(Member const& member) const;
    /// Those of the names, in this order. Throws  Error 65 for a name that is not here
    std::vector<Member> part(std::vector<std::string> const& names) const;

    /// The weight of a site's change: its samples divided by the largest number of samples of
    /// any site, or 1 where noise hides who took part.
    double weight_of(Member const& member, Charter const& charter) const;
    /// At which all changes, weighted, can be added.
    FixedPoint fixed_point(Charter const& charter) const;
};

/// Names with a line each.
std::string lines_of(std::vector<std::string> const& names);
std::vector<std::string> lines_in(std::string const& text);

} // namespace lockstep::federate
