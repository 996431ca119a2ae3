#include "federate/keys.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <cstring>
#include <sodium.h>

namespace lockstep::federate {

namespace {

static_assert(crypto_sign_SEEDBYTES == Secret::size && crypto_scalarmult_BYTES == Secret::size);
static_assert(sizeof(crypto_generichash_state) <= 384);

/// What the context of a digest is for: no two uses share one.
constexpr std::string_view domain = "lockstep federate 1\n";

unsigned char const* bytes_of(std::string_view text) {
    return reinterpret_cast<unsigned char const*>(text.data());
}

crypto_generichash_state* state_of(std::span<std::byte> bytes) {
    return reinterpret_cast<crypto_generichash_state*>(bytes.data());
}

/// One of each key's messages alone is encrypted, so that the nonce need not differ.
constexpr std::array<unsigned char, crypto_aead_xchacha20poly1305_ietf_NPUBBYTES> no_nonce{};

} // namespace

void require_cryptography() {
    if (sodium_init() < 0) {
        throw Error(ExitCode::unavailable,
                    {"libsodium could not be initialised", "the system gave it no random numbers",
                     "Check that getrandom or /dev/urandom works on this host"});
    }
}

Secret Secret::random() {
    Secret secret;
    randombytes_buf(secret.bytes_.data(), secret.bytes_.size());
    return secret;
}

Secret::Secret(std::span<std::uint8_t const, size> bytes) {
    std::copy(bytes.begin(), bytes.end(), bytes_.begin());
}

Secret::~Secret() {
    sodium_memzero(bytes_.data(), bytes_.size());
}

Secret Secret::derived(std::string_view use) const {
    auto const text = concat(domain, use);
    Secret secret;
    crypto_generichash(secret.bytes_.data(), size, bytes_of(text), text.size(), bytes_.data(),
                       bytes_.size());
    return secret;
}

SigningKey::SigningKey(Secret const& seed) {
    crypto_sign_seed_keypair(public_key_.data(), secret_key_.data(), seed.bytes().data());
}

SigningKey::~SigningKey() {
    sodium_memzero(secret_key_.data(), secret_key_.size());
}

Signature SigningKey::sign(std::string_view text) const {
    auto const whole = concat(domain, text);
    Signature signature{};
    crypto_sign_detached(signature.data(), nullptr, bytes_of(whole), whole.size(),
                         secret_key_.data());
    return signature;
}

bool is_signed(std::string_view text, Signature const& signature, PublicKey const& key) {
    auto const whole = concat(domain, text);
    return crypto_sign_verify_detached(signature.data(), bytes_of(whole), whole.size(),
                                       key.data()) == 0;
}

PublicKey exchange_key(Secret const& own) {
    PublicKey key{};
    crypto_scalarmult_base(key.data(), own.bytes().data());
    return key;
}

std::optional<Secret> agreed_secret(Secret const& own, PublicKey const& other,
                                    std::string_view use) {
    std::array<std::uint8_t, Secret::size> agreed{};
    if (crypto_scalarmult(agreed.data(), own.bytes().data(), other.data()) != 0) {
        return std::nullopt;
    }
    auto const ours = hex_text(exchange_key(own));
    auto const theirs = hex_text(other);
    auto const secret = Secret(agreed).derived(
        concat(use, "\n", std::min(ours, theirs), "\n", std::max(ours, theirs)));
    sodium_memzero(agreed.data(), agreed.size());
    return secret;
}

Octets encrypted(std::span<std::uint8_t const> text, Secret const& key) {
    Octets box(text.size() + crypto_aead_xchacha20poly1305_ietf_ABYTES);
    crypto_aead_xchacha20poly1305_ietf_encrypt(box.data(), nullptr, text.data(), text.size(),
                                               nullptr, 0, nullptr, no_nonce.data(),
                                               key.bytes().data());
    return box;
}

std::optional<Octets> decrypted(std::span<std::uint8_t const> box, Secret const& key) {
    if (box.size() < crypto_aead_xchacha20poly1305_ietf_ABYTES) {
        return std::nullopt;
    }
    Octets text(box.size() - crypto_aead_xchacha20poly1305_ietf_ABYTES);
    bool const good = crypto_aead_xchacha20poly1305_ietf_decrypt(
                          text.data(), nullptr, nullptr, box.data(), box.size(), nullptr, 0,
                          no_nonce.data(), key.bytes().data()) == 0;
    return good ? std::optional(std::move(text)) : std::nullopt;
}

void add_stream(std::span<std::uint32_t> words, Secret const& key, Sign sign) {
    constexpr std::size_t block = 64;              // bytes of ChaCha20's counter
    std::array<std::uint32_t, 16 * 1024> stream{}; // stays in a core's own cache
    constexpr std::array<unsigned char, crypto_stream_chacha20_NONCEBYTES> nonce{};
    std::uint64_t counter = 0;
    for (std::size_t at = 0; at < words.size(); at += stream.size()) {
        auto const part = words.subspan(at, std::min(stream.size(), words.size() - at));
        stream.fill(0);
        auto* const bytes = reinterpret_cast<unsigned char*>(stream.data());
        crypto_stream_chacha20_xor_ic(bytes, bytes, sizeof stream, nonce.data(), counter,
                                      key.bytes().data());
        counter += sizeof stream / block;
        for (std::size_t i = 0; i < part.size(); ++i) {
            part[i] += sign == Sign::plus ? stream[i] : 0U - stream[i];
        }
    }
    sodium_memzero(stream.data(), sizeof stream);
}

void fill_with_stream(std::span<std::uint8_t> bytes, Secret const& key) {
    constexpr std::array<unsigned char, crypto_stream_chacha20_NONCEBYTES> nonce{};
    crypto_stream_chacha20(bytes.data(), bytes.size(), nonce.data(), key.bytes().data());
}

Digester::Digester() {
    crypto_generichash_init(state_of(state_), nullptr, 0, sizeof(Digest));
    add(domain);
}

Digester& Digester::add(std::span<std::byte const> bytes) {
    crypto_generichash_update(state_of(state_),
                              reinterpret_cast<unsigned char const*>(bytes.data()), bytes.size());
    return *this;
}

Digester& Digester::add(std::string_view text) {
    return add(std::as_bytes(std::span(text.data(), text.size())));
}

Digest Digester::digest() const {
    auto copy = *this;
    Digest digest{};
    crypto_generichash_final(state_of(copy.state_), digest.data(), digest.size());
    return digest;
}

} // namespace lockstep::federate
