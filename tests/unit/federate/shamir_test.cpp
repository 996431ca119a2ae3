#include "federate/shamir.hpp"

#include "catch.hpp"
#include "error_of.hpp"

using namespace lockstep;
using namespace lockstep::federate;

namespace {

Secret secret_of(std::uint8_t seed) {
    Digest bytes{};
    bytes.fill(seed);
    return Secret(bytes).derived("test");
}

bool same(Secret const& a, Secret const& b) {
    return std::ranges::equal(a.bytes(), b.bytes());
}

} // namespace

TEST_CASE("any threshold of shares gives the secret, and fewer another one") {
    auto const secret = secret_of(1);
    for (std::size_t const sites : {1, 2, 5, 9}) {
        for (std::size_t threshold = 1; threshold <= sites; ++threshold) {
            auto const shares = shares_of(secret, sites, threshold, secret_of(2));
            for (unsigned chosen = 1; chosen < (1U << sites); ++chosen) {
                std::vector<Share> some;
                for (std::size_t i = 0; i < sites; ++i) {
                    if ((chosen >> i & 1U) != 0) {
                        some.push_back(shares[i]);
                    }
                }
                CHECK(same(joined_shares(some), secret) == (some.size() >= threshold));
            }
        }
    }
}

TEST_CASE("255 sites can share a secret, and no more") {
    auto const secret = secret_of(3);
    auto shares = shares_of(secret, 255, 170, secret_of(4));
    CHECK(same(joined_shares(std::span(shares).last(170)), secret));
    CHECK_FALSE(same(joined_shares(std::span(shares).last(169)), secret));
    shares[254].bytes[31] ^= 1;
    CHECK_FALSE(same(joined_shares(std::span(shares).last(170)), secret));
    for (auto const& [sites, threshold] : {std::pair{256, 2}, {3, 4}, {3, 0}}) {
        CHECK(test::code_of([&] { shares_of(secret, sites, threshold, secret_of(4)); }) ==
              ExitCode::software);
    }
}

TEST_CASE("fewer shares than the threshold are as likely for any other secret") {
    // Of the polynomials of degree 1, each value at 1 belongs to one for every secret: over many
    // coefficients the first share's bytes are spread evenly, whatever the secret is.
    Digest none{};
    std::array<int, 256> counts{};
    constexpr int draws = 2000;
    for (int i = 0; i < draws; ++i) {
        auto const randomness = secret_of(7).derived(std::to_string(i));
        auto const shares = shares_of(Secret(none), 3, 2, randomness);
        for (auto const byte : shares[0].bytes) {
            ++counts[byte];
        }
    }
    constexpr double expected = draws * 32.0 / 256;
    double chi_squared = 0;
    for (auto const count : counts) {
        chi_squared += (count - expected) * (count - expected) / expected;
    }
    CHECK(chi_squared < 370); // 255 degrees of freedom: exceeded once in 300,000 times
    CHECK(chi_squared > 165);
}
