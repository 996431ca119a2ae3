#include "federate/unmasking.hpp"

#include "base/text.hpp"
#include "federate/masks.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <optional>

namespace lockstep::federate {

Unmasking::Unmasking(Federation const& federation, std::int64_t round,
                     std::map<std::string, Message> const& answers)
    : federation_(federation), round_(round), answers_(answers),
      sites_(Roster::of_text(federation.read_of_coordinator(round, phase::roster).text("members"))),
      threshold_(static_cast<std::size_t>(federation.charter().threshold)) {}

bool Unmasking::take_off(std::span<std::uint32_t> sum, std::vector<std::string>& lines) const {
    auto const names_in = [&](char const* phase) {
        return lines_in(federation_.read_of_coordinator(round_, phase).text("sites"));
    };
    auto const counted = names_in(phase::survivors);
    auto const counted_members = sites_.part(counted);
    for (auto const& of : sites_.part(names_in(phase::sharers))) {
        bool const counts = std::ranges::find(counted, of.name) != counted.end();
        auto const shares = valid_shares(of, counts, lines);
        if (shares.size() < threshold_) {
            lines.push_back(concat("only ", amount_of(shares.size(), "share"), " of the key of ",
                                   of.name, shares.size() == 1 ? " is" : " are", " valid, but ",
                                   threshold_, " are needed"));
            return false;
        }
        auto const secret = joined_shares(shares);
        if (counts) {
            take_self_mask(sum, secret);
        } else if (exchange_key(secret) == of.mask_key) {
            take_pair_masks(sum, of, secret, counted_members);
        } else {
            throw Error(ExitCode::data,
                        {concat("the shares of ", of.name, " do not combine to its key"),
                         "that site announced one key and shared another",
                         "Abandon the round (--abandon), and ask that site for the reason"});
        }
    }
    return true;
}

/// As many as the threshold, each the one that its owner has committed to.
std::vector<Share> Unmasking::valid_shares(Member const& of, bool counts,
                                           std::vector<std::string>& lines) const {
    auto const commitments =
        federation_.read_of_site(round_, phase::shares, of.name).octets("commitments");
    if (commitments.size() != 2 * sizeof(Digest) * sites_.members.size()) {
        throw Error(
            ExitCode::data,
            {concat("the shares of ", of.name, " cannot be checked"),
             concat(federation_.file(federation_.binding(round_, phase::shares, of.name)).string(),
                    " does not hold a commitment for each site of the round"),
             concat("Ask ", of.name,
                    " to send this file again, or abandon the round (--abandon)")});
    }
    auto const part = concat("of/", of.name);
    std::vector<Share> shares;
    for (auto const& [from, answer] : answers_) {
        auto const names = answer.names();
        if (shares.size() == threshold_ || std::ranges::find(names, part) == names.end()) {
            continue;
        }
        auto const place = sites_.place_of(*sites_.find(from));
        auto const at = sizeof(Digest) * (2 * place + (counts ? 1 : 0));
        auto const expected = std::span(commitments).subspan(at, sizeof(Digest));
        std::optional<Digest> share;
        try {
            share = fixed_octets<sizeof(Digest)>(hex_text(answer.octets(part)));
        } catch (Error const& error) {
            if (error.code() != ExitCode::data) {
                throw;
            } // something other than octets
        }
        if (share && std::ranges::equal(commitment_to(*share), expected)) {
            shares.push_back({static_cast<std::uint8_t>(place + 1), *share});
        } else {
            lines.push_back(concat("the share of ", of.name, " that ", from,
                                   " sent was refused: it does not match its commitment"));
        }
    }
    return shares;
}

} // namespace lockstep::federate
