#include "federate/key_shares.hpp"

#include "base/text.hpp"
#include "federate/shamir.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>

namespace lockstep::federate {

namespace {

std::string name_of(Federation const& federation, std::int64_t round) {
    return concat(federation.charter().id, " ", round);
}

} // namespace

KeyShares::KeyShares(Federation const& federation, PrivateKey const& key, std::int64_t round)
    : federation_(federation), key_(key), round_(round),
      secrets_(RoundSecrets::of(key.secret(), name_of(federation, round))) {}

/// What the shares that `from` makes for `to` are encrypted with; `other` is the one that is not
/// this site.
Secret KeyShares::key_with(Member const& other, std::string const& from,
                           std::string const& to) const {
    auto const use = concat("shares\n", name_of(federation_, round_), "\n", from, "\n", to);
    auto const secret = agreed_secret(secrets_.share, other.share_key, use);
    if (!secret) {
        throw Error(ExitCode::data, {concat("no share can be exchanged with ", other.name),
                                     "that site's public key is not valid",
                                     "Ask the coordinator to abandon the round (--abandon)"});
    }
    return *secret;
}

void KeyShares::deal(Roster const& sites, Message& message) const {
    auto const count = sites.members.size();
    auto const threshold = static_cast<std::size_t>(federation_.charter().threshold);
    if (count < threshold || count > 255) {
        throw Error(ExitCode::data, {concat("round ", round_, " cannot share keys"),
                                     concat("it has ", amount_of(count, "site"), ", but needs ",
                                            threshold, " to 255"),
                                     "Ask the coordinator to abandon the round (--abandon)"});
    }
    auto const of_mask = shares_of(secrets_.mask, count, threshold, secrets_.coefficients_of_mask);
    auto const of_self = shares_of(secrets_.self, count, threshold, secrets_.coefficients_of_self);
    Octets commitments;
    for (std::size_t i = 0; i < count; ++i) {
        auto const& to = sites.members[i];
        Octets both(of_mask[i].bytes.begin(), of_mask[i].bytes.end());
        both.insert(both.end(), of_self[i].bytes.begin(), of_self[i].bytes.end());
        message.add_octets(concat("to/", to.name),
                           encrypted(both, key_with(to, key_.name(), to.name)));
        for (auto const& share : {of_mask[i], of_self[i]}) {
            auto const commitment = commitment_to(share.bytes);
            commitments.insert(commitments.end(), commitment.begin(), commitment.end());
        }
    }
    message.add_octets("commitments", commitments);
}

Digest KeyShares::share_from(Member const& from, bool counts) const {
    auto const message = federation_.read_of_site(round_, phase::shares, from.name);
    auto const both = decrypted(message.octets(concat("to/", key_.name())),
                                key_with(from, from.name, key_.name()));
    if (!both || both->size() != 2 * sizeof(Digest)) {
        throw Error(ExitCode::data, {concat("the share from ", from.name, " was refused"),
                                     "it was not encrypted for this site, or has changed",
                                     "Ask that site to send the file with its shares again"});
    }
    Digest share{};
    std::copy_n(both->begin() + (counts ? sizeof(Digest) : 0), share.size(), share.begin());
    return share;
}

} // namespace lockstep::federate
