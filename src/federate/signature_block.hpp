#pragma once

#include "base/partial_file.hpp"
#include "federate/keys.hpp"
#include "federate/message.hpp"
#include "lockstep/base/error.hpp"

#include <cstdint>
#include <filesystem>
#include <string>

namespace lockstep::federate {

/// Where the signed bytes of a message begin: after the checksum header and the signature block.
inline constexpr std::uint64_t signed_from = 8192;

/// Bytes 4,096 to 8,191 of a message: "LOCKSTEPSIGNED 1", the Ed25519 key and signature, the length
/// (u32) of the text that is signed, the text; zeros to the end. The text is the binding, the
/// digest of the parts, and the BLAKE2b of all bytes after the block.
struct SignatureBlock {
    PublicKey key{};
    Signature signature{};
    std::string text;
    Digest content{}; ///< of the bytes as they are now

    /// The value of a line of the text; empty where it has none.
    std::string field(std::string const& name) const;
};

/// That the message at `path` is not used, and why.
Error refused(std::filesystem::path const& path, std::string const& why);

/// Throws  Error 65 where a file of a federation is a link: all who take part may write there, and
///         theirs may lead to any file of this user
void require_no_link(std::filesystem::path const& path);

/// Reads and hashes the whole file.
///
/// Throws  Error 66 when there is no such file, 65 when it is damaged or a link
SignatureBlock read_signature_block(std::filesystem::path const& path);

/// Each throws Error 65 that says what is wrong with the message at `path`.
void require_signature(SignatureBlock const& block, std::filesystem::path const& path,
                       PublicKey const& key);
void require_binding(SignatureBlock const& block, std::filesystem::path const& path,
                     Binding const& expected);
void require_parts(SignatureBlock const& block, std::filesystem::path const& path,
                   Digest const& parts);

/// A message on its way to the disk.
class SignedFile {
  public:
    /// Throws  Error 73 or 74 where there is no room for `bytes` bytes
    SignedFile(std::filesystem::path path, std::uint64_t bytes);

    /// Where HDF5 writes it, with a user block up to `signed_from`.
    std::filesystem::path const& path() const noexcept { return partial_.path(); }

    /// Signs the text and the file's bytes, writes the checksum header, and gives the file its
    /// final name.
    void commit(std::string const& text, SigningKey const& key);

  private:
    std::filesystem::path name_;
    PartialFile partial_;
};

} // namespace lockstep::federate
