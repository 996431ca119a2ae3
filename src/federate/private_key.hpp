#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "federate/keys.hpp"

namespace lockstep::federate {

/// The private key of a site or a coordinator, in a file for its owner alone, and the journal
/// beside it (FILE.journal) of what was promised with it: a step that is repeated after a kill may
/// say only what it has said before.
class PrivateKey {
  public:
    /// Reads the file, or makes one, readable by its owner alone.
    ///
    /// Throws  Error 64 where others may read it, or it is another's; 65 where it is none; 73 where
    ///         it cannot be made
    static PrivateKey open_or_make(std::filesystem::path const& file, std::string const& name);
    /// Throws  Error 66 when there is no such file; 64 and 65 as above
    static PrivateKey open(std::filesystem::path const& file, std::string const& name);

    /// Makes a file of a secret that others may know, unless it is there.
    static PrivateKey simulated(std::filesystem::path const& file, std::string const& name,
                                Secret const& secret);

    std::string const& name() const noexcept { return name_; }
    Secret const& secret() const noexcept { return secret_; }
    SigningKey signing_key() const { return SigningKey(secret_.derived("signing")); }

    /// Notes durably that `what` was said in a round of a federation: `digest`.
    ///
    /// Throws  Error 65 where something else was said then; 73 or 74 where it cannot be noted
    void promise(std::string const& federation, std::string const& what,
                 std::string const& digest) const;

  private:
    PrivateKey(std::filesystem::path file, std::string name, Secret const& secret)
        : file_(std::move(file)), name_(std::move(name)), secret_(secret) {}

    std::filesystem::path file_;
    std::string name_;
    Secret secret_;
};

} // namespace lockstep::federate
