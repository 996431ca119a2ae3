#pragma once

#include "federate/charter.hpp"
#include "federate/fixed_point.hpp"
#include "federate/keys.hpp"

#include <cstdint>
#include <string>
#include <vector>

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

    /// Conversion to a line for each, and back. Throws Error 65 for a text that is not a roster
    std::string text() const;
    static Roster of_text(std::string const& text);

    /// The site of that name; null where there is none.
    Member const* find(std::string const& name) const;
    std::size_t place_of(Member const& member) const;
    /// The members with these names, in the given order. Throws Error 65 for an unknown name
    std::vector<Member> part(std::vector<std::string> const& names) const;

    /// The weight of a site's change: its samples divided by the largest number of samples of
    /// any site, or 1 where noise hides who took part.
    double weight_of(Member const& member, Charter const& charter) const;
    /// The fixed point in which all weighted changes can be added.
    FixedPoint fixed_point(Charter const& charter) const;
};

/// Names as a text with one per line, and back.
std::string lines_of(std::vector<std::string> const& names);
std::vector<std::string> lines_in(std::string const& text);

bool contains(std::vector<std::string> const& names, std::string const& name);

/// Whether a site can have this name, which is part of names of files: 1 to 64 letters, digits, -
/// and _.
bool is_site_name(std::string const& name);

} // namespace lockstep::federate
