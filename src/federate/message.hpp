#pragma once

#include "federate/keys.hpp"
#include "lockstep/h5/storage.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace lockstep::federate {

/// What a message belongs to. It is signed with the message, which is therefore valid nowhere else.
struct Binding {
    std::string federation; ///< its id
    std::int64_t round = 0; ///< 0: before the first
    std::string phase;      ///< "update"
    std::string sender;     ///< a site's name, or "coordinator"
    std::string model;      ///< fingerprint of the names and shapes of the weights

    /// A line for each: what is signed begins with it.
    std::string text() const;
};

struct SignatureBlock;

/// What a site or the coordinator tells the others, in a file of its own: datasets in an HDF5 file
/// whose user block holds the checksum header of checkpoints (4,096 bytes) and a signature (4,096
/// bytes). The signature is that of the binding and of a BLAKE2b of all bytes after it, so that no
/// byte is passed to HDF5 before its sender is known; docs/formats.md has the details.
class Message {
  public:
    Message() = default;
    explicit Message(Binding binding) : binding_(std::move(binding)) {}

    Binding const& binding() const noexcept { return binding_; }
    /// The key that it was signed with, for a message that was read.
    PublicKey const& signer() const noexcept { return signer_; }

    void add_text(std::string const& name, std::string_view text);
    void add_octets(std::string const& name, std::span<std::uint8_t const> octets);
    void add_words(std::string const& name, std::span<std::uint32_t const> words);

    /// Throws  Error 65 where there is none of that kind
    std::string text(std::string const& name) const;
    Octets octets(std::string const& name) const;
    std::vector<std::uint32_t> words(std::string const& name) const;
    std::vector<std::string> names() const;

    /// The digest of the binding and of everything in the message.
    Digest digest() const;

    /// Writes under a temporary name, syncs and renames.
    ///
    /// Throws  Error 73 where the file cannot be made, 74 for a full disk
    void write(std::filesystem::path const& path, SigningKey const& key) const;

    /// Throws  Error 66 when there is no such file; 65 when it is damaged, is not signed with this
    ///         key, or belongs to something else than `expected`
    static Message read(std::filesystem::path const& path, Binding const& expected,
                        PublicKey const& key);

    /// The same for a file that itself says which key it is signed with, and which federation and
    /// model it belongs to: those two are not compared where they are empty in `expected`.
    static Message read_of_unknown(std::filesystem::path const& path, Binding const& expected);

  private:
    struct Part {
        h5::Type type = h5::Type::u8;
        std::vector<std::byte> bytes;
    };
    void add(std::string const& name, h5::Type type, std::span<std::byte const> bytes);
    Part const& part(std::string const& name, h5::Type type) const;
    static Message read_verified(std::filesystem::path const& path, Binding binding,
                                 SignatureBlock const& block);

    Binding binding_;
    PublicKey signer_{};
    std::map<std::string, Part> parts_;
    std::filesystem::path path_; ///< that it was read from
};

} // namespace lockstep::federate
