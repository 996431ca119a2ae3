#pragma once

#include "base/hex_text.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// All cryptography is libsodium's (https://doc.libsodium.org). Where the program was built without
// it, `require_cryptography` says so, and nothing else here is called.
namespace lockstep::federate {

using Octets = std::vector<std::uint8_t>;
using Digest = std::array<std::uint8_t, 32>;    ///< BLAKE2b-256
using PublicKey = std::array<std::uint8_t, 32>; ///< of Ed25519 or of X25519
using Signature = std::array<std::uint8_t, 64>; ///< of Ed25519

/// Throws  Error 69 where the program was built without libsodium, or it does not start
void require_cryptography();

/// 32 secret bytes, overwritten on destruction.
class Secret {
  public:
    static constexpr std::size_t size = 32;

    /// From the system's source of randomness.
    static Secret random();

    Secret() = default;
    explicit Secret(std::span<std::uint8_t const, size> bytes);
    Secret(Secret const&) = default;
    Secret& operator=(Secret const&) = default;
    ~Secret();

    std::span<std::uint8_t const, size> bytes() const noexcept { return bytes_; }

    /// A secret for one use, which reveals nothing about this one: BLAKE2b keyed with this one.
    Secret derived(std::string_view use) const;

  private:
    std::array<std::uint8_t, size> bytes_{};
};

/// An Ed25519 key, made from a secret; the same secret always gives the same key.
class SigningKey {
  public:
    explicit SigningKey(Secret const& seed);
    ~SigningKey();
    SigningKey(SigningKey const&) = default;
    SigningKey& operator=(SigningKey const&) = default;

    PublicKey const& public_key() const noexcept { return public_key_; }
    Signature sign(std::string_view text) const;

  private:
    PublicKey public_key_{};
    std::array<std::uint8_t, 64> secret_key_{};
};

bool is_signed(std::string_view text, Signature const& signature, PublicKey const& key);

/// The public half of an X25519 key.
PublicKey exchange_key(Secret const& own);

/// A secret that only two sides know, by X25519: BLAKE2b of the shared value, both public keys and
/// the use; the same on both sides. Nothing for a weak public key, with which others could compute
/// it.
std::optional<Secret> agreed_secret(Secret const& own, PublicKey const& other,
                                    std::string_view use);

/// XChaCha20-Poly1305 with a key that must be used for only one message.
Octets encrypted(std::span<std::uint8_t const> text, Secret const& key);
/// The decrypted text; nothing where `box` was not encrypted with this key, or has changed.
std::optional<Octets> decrypted(std::span<std::uint8_t const> box, Secret const& key);

/// Adds to each word, modulo 2^32, a word of the ChaCha20 stream of a key, or subtracts it.
enum class Sign { plus, minus };
void add_stream(std::span<std::uint32_t> words, Secret const& key, Sign sign);

/// Overwrites the bytes with the stream of the key.
void fill_with_stream(std::span<std::uint8_t> bytes, Secret const& key);

/// BLAKE2b-256 over bytes that are added in parts.
class Digester {
  public:
    Digester();
    Digester& add(std::span<std::byte const> bytes);
    Digester& add(std::string_view text);
    Digest digest() const;

  private:
    alignas(64) std::array<std::byte, 384> state_{};
};

/// The bytes of hexadecimal digits; nothing where they are not as many, or the text is anything
/// else.
template <std::size_t Size>
std::optional<std::array<std::uint8_t, Size>> fixed_octets(std::string_view hex) {
    auto const octets = octets_of(hex);
    if (!octets || octets->size() != Size) {
        return std::nullopt;
    }
    std::array<std::uint8_t, Size> result{};
    for (std::size_t i = 0; i < Size; ++i) {
        result[i] = (*octets)[i];
    }
    return result;
}

} // namespace lockstep::federate
