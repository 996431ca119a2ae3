#pragma once

#include "federate/keys.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::federate {

/// The private key of a site or a coordinator, in a file that only its owner may read, and the
/// journal next to it (FILE.journal) of what was sent with it: a step that is repeated after a kill
/// may send only what it has sent before.
class PrivateKey {
  public:
    /// Reads the file, or makes one that only its owner may read, and an empty journal before it: a
    /// key without a journal has lost it.
    ///
    /// Throws  Error 64 where others may read it, or it belongs to another name; 65 where it is no
    ///         key; 73 where it cannot be made
    static PrivateKey open_or_make(std::filesystem::path const& file, std::string const& name);
    /// Throws  Error 66 when there is no such file; 64 and 65 as above
    static PrivateKey open(std::filesystem::path const& file, std::string const& name);

    /// Makes a file of a secret that others may know, unless it exists.
    static PrivateKey simulated(std::filesystem::path const& file, std::string const& name,
                                Secret const& secret);

    std::string const& name() const noexcept { return name_; }
    Secret const& secret() const noexcept { return secret_; }
    std::filesystem::path journal() const { return file_.string() + ".journal"; }
    SigningKey signing_key() const { return SigningKey(secret_.derived("signing")); }

    /// Records durably that `what`, with this digest, was sent or answered in a federation: once,
    /// or once in each `round`.
    ///
    /// Throws  Error 65 where something else was recorded earlier; 73 or 74 where it cannot be
    ///         recorded
    void promise(std::string const& federation, std::string const& what, std::string const& digest,
                 std::int64_t round = 0) const;

    /// The digest that was recorded under `what`, once or in a `round`; nothing where none was.
    std::optional<std::string> promised(std::string const& federation, std::string const& what,
                                        std::int64_t round = 0) const;
    /// Whether anything was recorded of a federation.
    bool knows(std::string const& federation) const;

    /// The largest number that was recorded under `what`; 0: none.
    std::int64_t newest(std::string const& federation, std::string const& what) const;
    /// Records a number durably, unless one that is as large was.
    void record_newest(std::string const& federation, std::string const& what,
                       std::int64_t number) const;

  private:
    /// Throws  Error 64 for a journal that others may write to
    std::vector<std::string> promises(std::string const& begin) const;
    void append(std::string const& line) const;
    PrivateKey(std::filesystem::path file, std::string name, Secret const& secret)
        : file_(std::move(file)), name_(std::move(name)), secret_(secret) {}

    std::filesystem::path file_;
    std::string name_;
    Secret secret_;
};

/// What is promised as the "sum" of a round that was abandoned before one was made.
inline constexpr char const* no_sum = "abandoned";

/// Throws  Error 64 for a key file in a federation's directory, which all sites see
void require_key_outside(std::filesystem::path const& key, std::filesystem::path const& directory);

} // namespace lockstep::federate
