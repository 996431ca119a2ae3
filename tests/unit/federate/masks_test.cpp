#include "base/random.hpp"
#include "base/text.hpp"
#include "federate/masks.hpp"

#include <algorithm>

#include "catch.hpp"

using namespace lockstep;
using namespace lockstep::federate;

namespace {

constexpr std::size_t masked_values = 1000;

Secret key_of(std::size_t site) {
    return Secret(Digest{}).derived(concat("site ", site));
}

/// A round of sites whose changes are random words.
struct Round {
    Roster roster;
    std::vector<RoundSecrets> secrets;
    std::vector<std::vector<std::uint32_t>> changes;

    explicit Round(std::size_t sites) {
        for (std::size_t i = 0; i < sites; ++i) {
            auto const name = concat("s", 100 + i);
            secrets.push_back(RoundSecrets::of(key_of(i), "test 1"));
            roster.members.push_back(
                {name, exchange_key(secrets[i].share), exchange_key(secrets[i].mask), 1});
            auto& change = changes.emplace_back(masked_values);
            for (std::size_t at = 0; at < masked_values; ++at) {
                change[at] = static_cast<std::uint32_t>(mixed(i * masked_values + at));
            }
        }
    }

    std::vector<std::uint32_t> masked(std::size_t site, std::vector<Member> const& sharers) const {
        auto words = changes[site];
        add_masks(words, roster.members[site].name, secrets[site], sharers);
        return words;
    }
};

void add(std::vector<std::uint32_t>& sum, std::vector<std::uint32_t> const& words) {
    for (std::size_t at = 0; at < sum.size(); ++at) {
        sum[at] += words[at];
    }
}

double chi_squared_of_bytes(std::span<std::uint32_t const> words) {
    std::array<double, 256> counts{};
    for (auto const word : words) {
        for (int shift = 0; shift < 32; shift += 8) {
            ++counts[word >> shift & 255U];
        }
    }
    auto const expected = static_cast<double>(words.size()) * 4 / 256;
    double sum = 0;
    for (auto const count : counts) {
        sum += (count - expected) * (count - expected) / expected;
    }
    return sum;
}

} // namespace

TEST_CASE("the unmasked sum is the plain sum, whoever was left out after sharing") {
    for (std::size_t const sites : {2, 3, 5}) {
        Round const round(sites);
        for (unsigned survivors = 1; survivors < (1U << sites); ++survivors) {
            std::vector<std::uint32_t> sum(masked_values, 0);
            std::vector<std::uint32_t> plain(masked_values, 0);
            std::vector<Member> counted;
            for (std::size_t i = 0; i < sites; ++i) {
                if ((survivors >> i & 1U) != 0) {
                    add(sum, round.masked(i, round.roster.members));
                    add(plain, round.changes[i]);
                    counted.push_back(round.roster.members[i]);
                }
            }
            CHECK(sum != plain);
            for (std::size_t i = 0; i < sites; ++i) {
                if ((survivors >> i & 1U) != 0) {
                    take_self_mask(sum, round.secrets[i].self);
                } else {
                    take_pair_masks(sum, round.roster.members[i], round.secrets[i].mask, counted);
                }
            }
            CHECK(sum == plain);
        }
    }
}

TEST_CASE("a masked change is as even as noise, and so is a sum that lacks one mask") {
    Round const round(3);
    std::vector<std::uint32_t> zeros(200000, 0);
    add_masks(zeros, round.roster.members[0].name, round.secrets[0], round.roster.members);
    auto const alone = chi_squared_of_bytes(zeros);
    CHECK((alone > 165 && alone < 370));
    // All pair masks cancel or are taken out, one self mask is missing.
    std::vector<std::uint32_t> sum(200000, 0);
    for (std::size_t i = 0; i < 3; ++i) {
        std::vector<std::uint32_t> part(sum.size(), 0);
        add_masks(part, round.roster.members[i].name, round.secrets[i], round.roster.members);
        add(sum, part);
    }
    take_self_mask(sum, round.secrets[0].self);
    take_self_mask(sum, round.secrets[1].self);
    auto const lacking = chi_squared_of_bytes(sum);
    CHECK((lacking > 165 && lacking < 370));
    take_self_mask(sum, round.secrets[2].self);
    CHECK(std::ranges::all_of(sum, [](auto word) { return word == 0; }));
}

TEST_CASE("a site that announces the key of another one uncovers nobody") {
    Round const round(3);
    for (std::size_t const copier : {0, 1, 2}) {
        auto sites = round.roster.members;
        auto const victim = (copier + 1) % 3;
        auto const third = (copier + 2) % 3;
        sites[copier].mask_key = sites[victim].mask_key;
        std::vector<std::uint32_t> words(masked_values, 0);
        add_masks(words, sites[third].name, round.secrets[third], sites);
        take_self_mask(words, round.secrets[third].self);
        CHECK(std::ranges::any_of(words, [](auto word) { return word != 0; }));
    }
}

TEST_CASE("rounds and sites share no mask") {
    auto const one = RoundSecrets::of(key_of(0), "test 1");
    auto const other = RoundSecrets::of(key_of(0), "test 2");
    for (auto const& [a, b] : {std::pair{one.mask, other.mask},
                               {one.self, other.self},
                               {one.mask, one.self},
                               {one.self, one.share},
                               {one.coefficients_of_mask, one.coefficients_of_self}}) {
        CHECK_FALSE(std::ranges::equal(a.bytes(), b.bytes()));
    }
    CHECK_FALSE(agreed_secret(one.mask, PublicKey{}, "test"));
}
