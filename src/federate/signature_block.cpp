#include "signature_block.hpp"

#include "base/file.hpp"
#include "base/partial_file.hpp"
#include "base/text.hpp"
#include "checkpoint/checksum_header.hpp"
#include "checkpoint/space.hpp"
#include "checkpoint/writer.hpp"
#include "federate/file_digest.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/checkpoint/verify.hpp"

#include <algorithm>
#include <cstring>

namespace lockstep::federate {

namespace {

constexpr std::string_view magic = "LOCKSTEPSIGNED 1";
constexpr std::uint64_t block_at = checkpoint::checksum_header_bytes;
constexpr std::uint64_t block_bytes = signed_from - block_at;
constexpr std::size_t key_at = 16;
constexpr std::size_t signature_at = key_at + sizeof(PublicKey);
constexpr std::size_t length_at = signature_at + sizeof(Signature);
constexpr std::size_t text_at = length_at + sizeof(std::uint32_t);

} // namespace

Error refused(std::filesystem::path const& path, std::string const& why) {
    return {ExitCode::data,
            {concat(path.string(), " was refused"), why,
             "Ask the sender of this file to send the file again"}};
}

std::string SignatureBlock::field(std::string const& name) const {
    std::string_view rest = text;
    while (!rest.empty()) {
        auto const line = rest.substr(0, rest.find('\n'));
        if (line.starts_with(concat(name, " "))) {
            return std::string(line.substr(name.size() + 1));
        }
        rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    }
    return {};
}

void require_no_link(std::filesystem::path const& path) {
    std::error_code none;
    if (std::filesystem::is_symlink(path, none)) {
        throw refused(path, "it is a link, which could lead to files outside the federation");
    }
}

SignatureBlock read_signature_block(std::filesystem::path const& path) {
    require_no_link(path);
    auto const file = File::open_read(path);
    if (file.size() < signed_from) {
        throw refused(path,
                      concat("it has ", file.size(),
                             " bytes, so it was cut short, or is not a message of a federation"));
    }
    std::array<std::byte, block_bytes> bytes{};
    file.read_at(block_at, bytes);
    if (std::memcmp(bytes.data(), magic.data(), magic.size()) != 0) {
        throw refused(path, "it has no signature, so it is not a message of a federation");
    }
    if (auto const damages = checkpoint::verify(path); !damages.empty()) {
        auto const& first = damages.front();
        throw refused(
            path, concat(first.what, " (bytes ", first.first_byte, " to ", first.last_byte, ")"));
    }
    SignatureBlock block;
    std::uint32_t length = 0;
    std::memcpy(block.key.data(), bytes.data() + key_at, block.key.size());
    std::memcpy(block.signature.data(), bytes.data() + signature_at, block.signature.size());
    std::memcpy(&length, bytes.data() + length_at, sizeof length);
    if (length > block_bytes - text_at) {
        throw refused(path, "the length of its signed text does not fit the file");
    }
    auto const unused = std::span(bytes).subspan(text_at + length);
    if (std::ranges::any_of(unused, [](std::byte byte) { return byte != std::byte{0}; })) {
        throw refused(path, "it has bytes after its signed text, which nobody has signed");
    }
    block.text.assign(reinterpret_cast<char const*>(bytes.data()) + text_at, length);
    block.content = digest_of(file, signed_from);
    return block;
}

void require_signature(SignatureBlock const& block, std::filesystem::path const& path,
                       PublicKey const& key) {
    if (block.key != key) {
        throw refused(path,
                      concat("it is signed by ", hex_text(block.key), ", not by ", hex_text(key)));
    }
    if (!is_signed(block.text, block.signature, key)) {
        throw refused(path,
                      "its signature is wrong, so it was not written by the owner of its key, "
                      "or has changed since");
    }
    if (block.field("content") != hex_text(block.content)) {
        throw refused(path, "its bytes are not those that were signed");
    }
}

void require_binding(SignatureBlock const& block, std::filesystem::path const& path,
                     Binding const& expected) {
    for (auto const& [name, value] : {std::pair{"federation", expected.federation},
                                      {"round", std::to_string(expected.round)},
                                      {"phase", expected.phase},
                                      {"sender", expected.sender},
                                      {"model", expected.model}}) {
        if (auto const found = block.field(name); found != value) {
            throw refused(path, concat("it is signed for ", name, " ", found, ", not for ", value));
        }
    }
}

void require_parts(SignatureBlock const& block, std::filesystem::path const& path,
                   Digest const& parts) {
    if (block.field("parts") != hex_text(parts)) {
        throw refused(path,
                      "it changed while it was read, so what was read is not what was signed");
    }
}

/// The name of its partial file cannot be guessed, so nobody can put a link there beforehand.
SignedFile::SignedFile(std::filesystem::path path, std::uint64_t bytes)
    : name_(std::move(path)), partial_(partial_path(name_)) {
    checkpoint::try_space(partial_.path(), bytes + signed_from);
}

void SignedFile::commit(std::string const& text, SigningKey const& key) {
    auto const file = File::open_write(partial_.path());
    auto const whole = concat(text, "content ", hex_text(digest_of(file, signed_from)), "\n");
    auto const length = static_cast<std::uint32_t>(whole.size());
    if (whole.size() > block_bytes - text_at) {
        throw Error(ExitCode::software,
                    {"the text to be signed is too long", concat("it has ", whole.size(), " bytes"),
                     "This is a bug; please report it"});
    }
    auto const signature = key.sign(whole);
    std::array<std::byte, block_bytes> bytes{};
    std::memcpy(bytes.data(), magic.data(), magic.size());
    std::memcpy(bytes.data() + key_at, key.public_key().data(), sizeof(PublicKey));
    std::memcpy(bytes.data() + signature_at, signature.data(), signature.size());
    std::memcpy(bytes.data() + length_at, &length, sizeof length);
    std::memcpy(bytes.data() + text_at, whole.data(), whole.size());
    file.write_at(block_at, bytes);
    checkpoint::write_checksum_header(file);
    partial_.rename(name_);
}

} // namespace lockstep::federate
