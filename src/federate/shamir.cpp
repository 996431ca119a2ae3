#include "federate/shamir.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

namespace lockstep::federate {

namespace {

/// The product in GF(2^8): shifts and additions under masks, always the same ones.
std::uint8_t product(std::uint8_t a, std::uint8_t b) {
    unsigned result = 0;
    unsigned shifted = a;
    for (unsigned bit = 0; bit < 8; ++bit) {
        result ^= shifted & (0U - ((b >> bit) & 1U));
        shifted = (shifted << 1) ^ (0x11bU & (0U - ((shifted >> 7) & 1U)));
    }
    return static_cast<std::uint8_t>(result);
}

/// a^254, which is 1 / a for all but 0.
std::uint8_t inverse(std::uint8_t a) {
    std::uint8_t result = 1;
    std::uint8_t power = a;
    for (int bit = 1; bit < 8; ++bit) {
        power = product(power, power);
        result = product(result, power);
    }
    return result;
}

} // namespace

std::vector<Share> shares_of(Secret const& secret, std::size_t shared_with, std::size_t threshold,
                             Secret const& randomness) {
    if (threshold == 0 || threshold > shared_with || shared_with > 255) {
        throw Error(ExitCode::software,
                    {concat("a secret cannot be shared among ", shared_with, " sites"),
                     shared_with > 255 ? std::string("at most 255 sites are possible")
                                       : concat("the threshold is ", threshold,
                                                ", but must be from 1 to ", shared_with),
                     "This is a bug; please report it"});
    }
    Octets coefficients((threshold - 1) * Secret::size);
    fill_with_stream(coefficients, randomness);
    std::vector<Share> shares;
    for (std::size_t site = 1; site <= shared_with; ++site) {
        auto& share = shares.emplace_back(Share{static_cast<std::uint8_t>(site), {}});
        for (std::size_t i = 0; i < Secret::size; ++i) {
            std::uint8_t value = 0; // Horner's rule, the highest power first
            for (auto power = threshold - 1; power > 0; --power) {
                value = product(value ^ coefficients[(power - 1) * Secret::size + i], share.at);
            }
            share.bytes[i] = value ^ secret.bytes()[i];
        }
    }
    return shares;
}

Digest commitment_to(Digest const& share) {
    return Digester().add("share\n").add(std::as_bytes(std::span(share))).digest();
}

Secret joined_shares(std::span<Share const> shares) {
    Digest bytes{};
    for (auto const& share : shares) {
        std::uint8_t weight = 1; // of Lagrange, at 0
        for (auto const& other : shares) {
            if (other.at != share.at) {
                weight = product(weight, product(other.at, inverse(other.at ^ share.at)));
            }
        }
        for (std::size_t i = 0; i < bytes.size(); ++i) {
            bytes[i] ^= product(weight, share.bytes[i]);
        }
    }
    return Secret(bytes);
}

} // namespace lockstep::federate
