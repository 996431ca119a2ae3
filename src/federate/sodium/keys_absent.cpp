#include "federate/keys.hpp"
#include "lockstep/base/error.hpp"

namespace lockstep::federate {

void require_cryptography() {
    throw Error(
        ExitCode::unavailable,
        {"this program was built without libsodium",
         "federated training needs libsodium to sign and encrypt messages, and privacy.noise needs "
         "libsodium to draw noise that nobody can guess",
         "Install libsodium (Debian: libsodium-dev), then configure and build the program again"});
}

// What follows is never reached: every command asks for cryptography first.

Secret Secret::random() {
    require_cryptography();
    return {};
}

Secret::Secret(std::span<std::uint8_t const, size> /*bytes*/) {
    require_cryptography();
}

Secret::~Secret() = default;

Secret Secret::derived(std::string_view /*use*/) const {
    require_cryptography();
    return {};
}

SigningKey::SigningKey(Secret const& /*seed*/) {
    require_cryptography();
}

SigningKey::~SigningKey() = default;

Signature SigningKey::sign(std::string_view /*text*/) const {
    require_cryptography();
    return {};
}

bool is_signed(std::string_view /*text*/, Signature const& /*signature*/,
               PublicKey const& /*key*/) {
    return false;
}

PublicKey exchange_key(Secret const& /*own*/) {
    require_cryptography();
    return {};
}

std::optional<Secret> agreed_secret(Secret const& /*own*/, PublicKey const& /*other*/,
                                    std::string_view /*use*/) {
    return std::nullopt;
}

Octets encrypted(std::span<std::uint8_t const> /*text*/, Secret const& /*key*/) {
    require_cryptography();
    return {};
}

std::optional<Octets> decrypted(std::span<std::uint8_t const> /*box*/, Secret const& /*key*/) {
    return std::nullopt;
}

void add_stream(std::span<std::uint32_t> /*words*/, Secret const& /*key*/, Sign /*sign*/) {
    require_cryptography();
}

void fill_with_stream(std::span<std::uint8_t> /*bytes*/, Secret const& /*key*/) {
    require_cryptography();
}

Digester::Digester() {
    require_cryptography();
}

Digester& Digester::add(std::span<std::byte const> /*bytes*/) {
    return *this;
}

Digester& Digester::add(std::string_view /*text*/) {
    return *this;
}

Digest Digester::digest() const {
    return {};
}

} // namespace lockstep::federate
