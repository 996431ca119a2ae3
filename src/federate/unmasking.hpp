#pragma once

#include "federate/federation.hpp"
#include "federate/roster.hpp"
#include "federate/shamir.hpp"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace lockstep::federate {

/// Removes the masks from a round's sum: reconstructs the keys that sites have shared, of the own
/// mask of a site that counts, and of the pair masks of one that does not.
class Unmasking {
  public:
    /// `answers`: what sites have sent in phase unmask, at least the threshold of them.
    Unmasking(Federation const& federation, std::int64_t round,
              std::map<std::string, Message> const& answers);

    /// False where too few shares of a key are valid. Says in `lines` which were refused.
    ///
    /// Throws  Error 65 for a site that has shared another key than the one it announced
    bool take_off(std::span<std::uint32_t> sum, std::vector<std::string>& lines) const;

  private:
    std::vector<Share> valid_shares(Member const& of, bool counts,
                                    std::vector<std::string>& lines) const;

    Federation const& federation_;
    std::int64_t round_;
    std::map<std::string, Message> const& answers_;
    Roster sites_;
    std::size_t threshold_;
};

} // namespace lockstep::federate
