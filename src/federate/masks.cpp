#include "federate/masks.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>

namespace lockstep::federate {

namespace {

constexpr char const* pair_use = "pair mask";
constexpr char const* self_use = "self mask";

/// Returns the secret that two sites derive from keys and names: a site that announces another
/// one's key shares no mask with it.
Secret pair_secret(Secret const& own, std::string const& name, Member const& other) {
    auto const use =
        concat(pair_use, "\n", std::min(name, other.name), "\n", std::max(name, other.name));
    auto const secret = agreed_secret(own, other.mask_key, use);
    if (!secret) {
        throw Error(
            ExitCode::data,
            {concat("the public key of ", other.name, " is not valid"),
             "no shared secret can be derived from that key",
             "Let the coordinator abandon the round (--abandon) and remove that site (--remove)"});
    }
    return *secret;
}

} // namespace

RoundSecrets RoundSecrets::of(Secret const& private_key, std::string const& round) {
    auto const made = [&](char const* use) {
        return private_key.derived(concat(use, "\n", round));
    };
    return {made("share"), made("mask"), made("self"), made("coefficients of mask"),
            made("coefficients of self")};
}

void add_masks(std::span<std::uint32_t> words, std::string const& own, RoundSecrets const& secrets,
               std::vector<Member> const& masked) {
    add_stream(words, secrets.self.derived(self_use), Sign::plus);
    for (auto const& other : masked) {
        if (other.name != own) {
            add_stream(words, pair_secret(secrets.mask, own, other),
                       own < other.name ? Sign::plus : Sign::minus);
        }
    }
}

void take_self_mask(std::span<std::uint32_t> sum, Secret const& self) {
    add_stream(sum, self.derived(self_use), Sign::minus);
}

void take_pair_masks(std::span<std::uint32_t> sum, Member const& missing, Secret const& mask,
                     std::vector<Member> const& counted) {
    for (auto const& other : counted) {
        // The other added its mask where its name comes first: that is taken out again.
        add_stream(sum, pair_secret(mask, missing.name, other),
                   other.name < missing.name ? Sign::minus : Sign::plus);
    }
}

} // namespace lockstep::federate
